# The everyday commands. CMake does the work: `cmake -B build && cmake --build build` is enough where
# everything that tutti needs is installed. CMAKE_ARGS="-DTUTTI_CUDA=OFF" and the like are handed on.
BUILD ?= build
JOBS ?= $(shell nproc)
CMAKE_ARGS ?=
export CMAKE_GENERATOR ?= Ninja

.PHONY: build setup demo test nightly bench clean

build: setup
	cmake -S . -B $(BUILD) $(CMAKE_ARGS)
	cmake --build $(BUILD) --parallel $(JOBS)

setup:
	@tools/setup.sh

# Trains on 1,797 handwritten digits, on two ranks.
demo: build
	tools/mpirun.sh -np 2 $(BUILD)/tutti train examples/digits.toml

test: build
	cd $(BUILD) && ctest --output-on-failure --no-tests=error

# Ten thousand seeds of everything that can go wrong, and ten thousand damaged files of each kind that is read.
nightly: build
	$(BUILD)/tutti simulate examples/faults/tiny.toml --ranks 4 --seeds 1..10000 \
		--faults examples/faults/all.toml
	TUTTI_MUTATIONS=10000 $(BUILD)/tests/mutations_test

# Side by side with PyTorch; minutes.
bench: build
	bench/compare.py --tutti $(BUILD)/tutti

clean:
	rm -rf $(BUILD)

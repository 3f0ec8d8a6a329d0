# The everyday commands. CMake does the work: `cmake -B build && cmake --build build` is enough where
# everything that tutti needs is installed. CMAKE_ARGS="-DTUTTI_CUDA=OFF" and the like are handed on.
BUILD ?= build
JOBS ?= $(shell nproc)
CMAKE_ARGS ?=
export CMAKE_GENERATOR ?= Ninja

.PHONY: build configure setup wheel demo test nightly sanitize bench clean

build: configure
	cmake --build $(BUILD) --parallel $(JOBS)

configure: setup
	cmake -S . -B $(BUILD) $(CMAKE_ARGS)

setup:
	@tools/setup.sh

# For pip, in $(BUILD)/wheel: docs/install.md.
wheel: configure
	@tools/setup.sh --wheel
	cmake --build $(BUILD) --parallel $(JOBS) --target tutti_parts
	$${XDG_CACHE_HOME:-$$HOME/.cache}/tutti/wheel-tools/bin/python tools/wheel.py $(BUILD)

# Trains on 1,797 handwritten digits, on two ranks. Installs and builds what that needs: no tests, no Parquet.
demo:
	@tools/setup.sh --without-parquet
	cmake -S . -B $(BUILD) $(CMAKE_ARGS)
	cmake --build $(BUILD) --parallel $(JOBS) --target tutti
	tools/mpirun.sh -np 2 $(BUILD)/tutti train examples/digits.toml

# Three slots for each core, and one for a test that waits: cmake/targets.cmake says how many a test takes.
test: build
	cd $(BUILD) && ctest --parallel $$((3 * $(JOBS) + 1)) --output-on-failure --no-tests=error

# The suite as on processors with fewer vector instructions.
AVX2 = ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2
NO_VECTORS = ONEDNN_MAX_CPU_ISA=SSE41 ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2

# Ten thousand seeds of everything that can go wrong, longer sweeps in the tests that have some, and ten
# thousand damaged files of each kind that is read; CPU time and memory beside the last release; then
# libFuzzer, a minute for each reader. Then weights of other programs there and back, the Python package and
# its notebook, runs as W&B and MLflow read them, the bundle for GPUs in an empty environment, the oldest
# and the newest libtorch, Open MPI 5, the wheel in bare Debians and under Slurm, and the sanitizers.
nightly: LONG_RUNS = beside|runs_(simulate|drawn|real_memory|device|first_light)
nightly: build
	cd $(BUILD) && TUTTI_NIGHTLY=1 ctest \
		-R '$(LONG_RUNS)|(sim|actors|commands|golden|sharding|device_runs)_test|algorithm_table' \
		--output-on-failure --no-tests=error
	for isa in "$(AVX2)" "$(NO_VECTORS)"; do (cd $(BUILD) && env $$isa ctest \
		--parallel $$((3 * $(JOBS) + 1)) --output-on-failure --no-tests=error) || exit 1; done
	$(BUILD)/tutti simulate examples/faults/tiny.toml --ranks 4 --seeds 1..10000 \
		--faults examples/faults/all.toml
	TUTTI_MUTATIONS=10000 $(BUILD)/tests/mutations_test
	TUTTI_MUTATIONS=10000 $(BUILD)/tests/run_folder_mutations_test
	bench/drift.py --tutti $(BUILD)/tutti --jobs $(JOBS)
	JOBS=$(JOBS) tests/fuzz.sh $(BUILD)
	tests/clients.sh $(BUILD)
	tests/notebook.sh $(BUILD)
	tests/trackers.sh $(BUILD)
	tests/remote_stores.sh $(BUILD)
	tests/gpu_bundle_rehearsal.sh $(BUILD)
	JOBS=$(JOBS) tests/libtorch_versions.sh $(BUILD)
	tools/setup.sh --openmpi
	cd $(BUILD) && TUTTI_OPENMPI=$${XDG_CACHE_HOME:-$$HOME/.cache}/tutti/openmpi-5.0.11 ctest \
		-R 'runs_(same_bits|stops|crashes|kills|hangs)|\.np[0-9]|two_hosts' \
		--parallel $$((3 * $(JOBS) + 1)) --output-on-failure --no-tests=error
	$(MAKE) wheel
	tests/wheel.sh $(BUILD)/wheel/tutti-*.whl
	tests/slurm_rehearsal.sh $(BUILD)/wheel/tutti-*.whl
	$(MAKE) sanitize

# All tests with AddressSanitizer and UndefinedBehaviorSanitizer (cmake/sanitize.cmake).
sanitize: setup
	cmake -S . -B build-sanitize -DTUTTI_SANITIZE=address,undefined -DTUTTI_BENCH=OFF $(CMAKE_ARGS)
	cmake --build build-sanitize --parallel $(JOBS)
	cd build-sanitize && ctest --parallel $(JOBS) --output-on-failure --no-tests=error

# Side by side with PyTorch; minutes.
bench: build
	bench/compare.py --tutti $(BUILD)/tutti

clean:
	rm -rf $(BUILD)

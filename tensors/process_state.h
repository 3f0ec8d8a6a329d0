#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tutti {

// The only access to libtorch's state per process.

// Sets the number of intra-op threads of every thread that calls kernels.
void set_compute_threads(int threads);

// True: non-deterministic kernels throw c10::Error, cuDNN uses deterministic kernels and no benchmark, and
// uninitialized memory is filled; cuBLAS gets a workspace of its own for each stream
// (CUBLAS_WORKSPACE_CONFIG, unless the environment has it). As composer.utils.configure_deterministic_mode.
// Before the first product on a GPU.
void set_deterministic_mode(bool on);

// True: on GPUs, products and convolutions of float32 numbers may round their factors to 10 bits of fraction.
void set_tf32(bool on);

// Seeds the default generators of the CPU and of the device. Called before each microbatch, so that no number
// depends on history.
void seed_default_generators(uint64_t seed, c10::Device device = c10::kCPU);

// Composer's name for the same, for a program that draws random numbers before training.
inline void seed_all(uint64_t seed) { seed_default_generators(seed); }

// States of the default generators of the CPU and of a device.
class DefaultGenerators {
 public:
  explicit DefaultGenerators(c10::Device device = c10::kCPU);  // as they are now
  void restore() const;
  // True if the CPU's generator is no longer in this state: the host has drawn numbers.
  bool host_has_drawn() const;

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

// The default generators in other states for the lifetime of this object, then in the earlier states.
class DefaultGeneratorScope {
 public:
  DefaultGeneratorScope(const DefaultGenerators& states, c10::Device device) : before_(device) {
    states.restore();
  }
  ~DefaultGeneratorScope() { before_.restore(); }
  DefaultGeneratorScope(const DefaultGeneratorScope&) = delete;
  DefaultGeneratorScope& operator=(const DefaultGeneratorScope&) = delete;

 private:
  DefaultGenerators before_;
};

// For several ranks in one process: swaps the state of a rank (generators, memory owner) with the run token.
class ProcessStateSwitch {
 public:
  explicit ProcessStateSwitch(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}
  // Before the rank's first turn; the CPU otherwise.
  void set_device(int rank, c10::Device device) { ranks_.at(static_cast<std::size_t>(rank)).device = device; }
  void enter(int rank);  // saves the state of the previous rank, restores the state of `rank`

 private:
  struct Rank {
    c10::Device device{c10::kCPU};
    std::optional<DefaultGenerators> generators;  // nullopt before its first turn
  };

  std::vector<Rank> ranks_;
  int current_ = -1;
};

}  // namespace tutti

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace tutti {

// The only access to libtorch's state per process.

// Sets the number of intra-op threads of every thread that calls kernels.
void set_compute_threads(int threads);

// True: non-deterministic kernels throw c10::Error, cuDNN uses deterministic kernels and no benchmark, and
// uninitialized memory is filled. As composer.utils.configure_deterministic_mode.
void set_deterministic_mode(bool on);

// Seeds the default CPU generator. Called before each microbatch, so that no number depends on history.
void seed_default_generator(uint64_t seed);

// Composer's name for the same, for a program that draws random numbers before it trains.
inline void seed_all(uint64_t seed) { seed_default_generator(seed); }

// The state of the default CPU generator: uint8, a copy.
at::Tensor default_generator_state();

// The default CPU generator in another state for the lifetime of this object, then in the state before it.
class DefaultGeneratorScope {
 public:
  explicit DefaultGeneratorScope(const at::Tensor& state);
  ~DefaultGeneratorScope();
  DefaultGeneratorScope(const DefaultGeneratorScope&) = delete;
  DefaultGeneratorScope& operator=(const DefaultGeneratorScope&) = delete;

 private:
  at::Tensor before_;
};

// For several ranks in one process: swaps the state of a rank (generator, memory owner) with the run token.
class ProcessStateSwitch {
 public:
  explicit ProcessStateSwitch(int ranks) : generators_(ranks) {}
  void enter(int rank);  // saves the state of the previous rank, restores the state of `rank`

 private:
  std::vector<at::Tensor> generators_;
  int current_ = -1;
};

}  // namespace tutti

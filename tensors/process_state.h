#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace tutti {

// What libtorch keeps once a process, and what tutti does to it. Nothing else in tutti touches it.

// Intra-op threads of every thread that calls kernels.
void set_compute_threads(int threads);

// True: kernels that may differ between runs throw c10::Error, cuDNN chooses among deterministic ones without
// timing them, and what is not initialized is filled. As composer.utils.configure_deterministic_mode.
void set_deterministic_mode(bool on);

// The default CPU generator starts over from `seed`. Done before each microbatch, so that no draw depends on
// history.
void seed_default_generator(uint64_t seed);

// The same, by Composer's name: for a program that draws before it trains. A run needs it not: what it draws
// is a function of its seed.
inline void seed_all(uint64_t seed) { seed_default_generator(seed); }

// Several ranks in one process: swaps what belongs to a rank (generator, memory owner) as the run token
// moves.
class ProcessStateSwitch {
 public:
  explicit ProcessStateSwitch(int ranks) : generators_(ranks) {}
  void enter(int rank);  // saves the state of the rank that was in, restores `rank`'s

 private:
  std::vector<at::Tensor> generators_;
  int current_ = -1;
};

}  // namespace tutti

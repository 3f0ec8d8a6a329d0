#include <algorithm>

#include "tensors/cuda/kernels.h"
#include "tensors/kernels/bernoulli_pair.h"

namespace tutti {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostRows = 65535;   // of blocks; each has every so many samples
constexpr int64_t kMostBlocks = 4096;  // of a sample

__global__ void draw_pairs(bool* drawn, int64_t samples, int64_t size, const int64_t* key, int64_t state,
                           int64_t first_place, uint64_t below) {
  const RandomKey batch_key(static_cast<uint64_t>(key ? key[0] : state));
  if (key) first_place = key[1];
  for (int64_t i = blockIdx.y; i < samples; i += gridDim.y) {
    const RandomKey sample = batch_key.fold_in(static_cast<uint64_t>(first_place + i));
    bool* const to = drawn + i * size;
    for (int64_t pair = int64_t{blockIdx.x} * kThreads + threadIdx.x; 2 * pair < size;
         pair += int64_t{gridDim.x} * kThreads) {
      const BernoulliPair both = bernoulli_pair(sample, pair, below);
      to[2 * pair] = both.first;
      if (2 * pair + 1 < size) to[2 * pair + 1] = both.second;
    }
  }
}

}  // namespace

void draw_bernoullis(bool* drawn, int64_t samples, int64_t size, const int64_t* key, int64_t batch_state,
                     int64_t first_place, uint64_t below, cudaStream_t stream) {
  if (samples == 0 || size == 0) return;
  const int64_t blocks = (size + 2 * kThreads - 1) / (2 * kThreads);
  const dim3 grid(static_cast<unsigned>(std::min(blocks, kMostBlocks)),
                  static_cast<unsigned>(std::min(samples, kMostRows)));
  draw_pairs<<<grid, kThreads, 0, stream>>>(drawn, samples, size, key, batch_state, first_place, below);
}

}  // namespace tutti

#include <algorithm>

#include "tensors/cuda/kernels.h"
#include "tensors/kernels/digest_sums.h"

namespace tutti {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kPairsAThread = 8;
constexpr int64_t kMostBlocks = 2048;  // of a range
constexpr int kRanges = 128;           // of a launch: they are among the kernel's arguments

struct Range {
  int64_t row, begin, end;
};
struct Ranges {
  Range all[kRanges];
};

__device__ uint32_t word_at(const uint8_t* bytes, int64_t word, int64_t count) {
  const bool is_aligned = reinterpret_cast<uintptr_t>(bytes) % 4 == 0;
  if (is_aligned && 4 * word + 4 <= count) return reinterpret_cast<const uint32_t*>(bytes)[word];
  return digest_word(bytes, word, count);
}

__device__ void add_to(uint64_t* sum, uint64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(value));
}

__device__ uint64_t sum_of_warp(uint64_t value) {
  for (int half = 16; half > 0; half /= 2) value += __shfl_down_sync(0xffffffff, value, half);
  return value;
}

__global__ void add_ranges(uint64_t* sums, const uint8_t* bytes, Ranges ranges) {
  const Range range = ranges.all[blockIdx.y];
  const int64_t count = range.end - range.begin, pairs = digest_pairs(count);
  const uint8_t* const from = bytes + range.begin;
  DigestSums own;
  for (int64_t pair = int64_t{blockIdx.x} * kThreads + threadIdx.x; pair < pairs;
       pair += int64_t{gridDim.x} * kThreads) {
    const DigestPair places = digest_pair(pair, count);
    const uint32_t first = word_at(from, places.first, count), second = word_at(from, places.second, count);
    own.products += digest_product(first, second, digest_keys(pair));
    own.words += first + second;
  }
  __shared__ uint64_t products[kWarps], words[kWarps];
  own.products = sum_of_warp(own.products);
  own.words = sum_of_warp(own.words);
  if (threadIdx.x % 32 == 0) {
    products[threadIdx.x / 32] = own.products;
    words[threadIdx.x / 32] = own.words;
  }
  __syncthreads();
  if (threadIdx.x != 0 || int64_t{blockIdx.x} * kThreads >= pairs) return;
  for (int warp = 1; warp < kWarps; ++warp) {
    own.products += products[warp];
    own.words += words[warp];
  }
  add_to(&sums[2 * range.row], own.products);
  add_to(&sums[2 * range.row + 1], own.words);
}

}  // namespace

void add_digest_sums(uint64_t* sums, const uint8_t* bytes, const int64_t* begins, const int64_t* ends,
                     int64_t ranges, cudaStream_t stream) {
  for (int64_t next = 0; next < ranges;) {
    Ranges some;
    unsigned count = 0;
    int64_t pairs = 0;
    for (; next < ranges && count < kRanges; ++next) {
      if (begins[next] == ends[next]) continue;
      some.all[count++] = {next, begins[next], ends[next]};
      pairs = std::max(pairs, digest_pairs(ends[next] - begins[next]));
    }
    if (count == 0) return;
    const int64_t blocks = (pairs + kThreads * kPairsAThread - 1) / (kThreads * kPairsAThread);
    const dim3 grid(static_cast<unsigned>(std::min(blocks, kMostBlocks)), count);
    add_ranges<<<grid, kThreads, 0, stream>>>(sums, bytes, some);
  }
}

}  // namespace tutti

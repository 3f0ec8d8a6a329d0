#include <c10/macros/Macros.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tensors/cuda/kernels.h"
#include "tensors/kernels/cross_entropy.h"

namespace tutti {
namespace {

// A block a row. Rows whose memory allows it are read and written 16 bytes at a time.
constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;

template <class Number>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / sizeof(Number);
  Number numbers[kCount];
};

template <class Number>
__device__ bool in_packs(const Number* row, int64_t classes) {
  return classes % Pack<Number>::kCount == 0 && reinterpret_cast<uintptr_t>(row) % sizeof(Pack<Number>) == 0;
}

template <class Number>
__device__ void add_pack(ExpSum& sum, const Pack<Number>& pack) {
  float scores[Pack<Number>::kCount];
  for (int i = 0; i < Pack<Number>::kCount; ++i) scores[i] = static_cast<float>(pack.numbers[i]);
  sum.add(scores);
}

__device__ ExpSum sum_of_warp(ExpSum sum) {
  for (int half = 16; half > 0; half /= 2)
    sum.join({__shfl_down_sync(0xffffffff, sum.largest, half), __shfl_down_sync(0xffffffff, sum.sum, half)});
  return sum;
}

template <class Number>
__global__ void sum_rows(float* losses, float* log_sums, const Number* scores, const int64_t* target,
                         int64_t classes, int64_t ignore_index) {
  const int64_t row = blockIdx.x;
  const Number* const from = scores + row * classes;
  ExpSum sum;
  if (in_packs(from, classes)) {
    const auto* const packs = reinterpret_cast<const Pack<Number>*>(from);
    for (int64_t i = threadIdx.x; i < classes / Pack<Number>::kCount; i += kThreads) add_pack(sum, packs[i]);
  } else {
    for (int64_t i = threadIdx.x; i < classes; i += kThreads) sum.add(static_cast<float>(from[i]));
  }
  __shared__ float largest[kWarps], sums[kWarps];
  sum = sum_of_warp(sum);
  if (threadIdx.x % 32 == 0) {
    largest[threadIdx.x / 32] = sum.largest;
    sums[threadIdx.x / 32] = sum.sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kWarps; ++warp) sum.join({largest[warp], sums[warp]});
  log_sums[row] = sum.log();
  const int64_t index = target[row];
  CUDA_KERNEL_ASSERT(index == ignore_index || (index >= 0 && index < classes));
  losses[row] = index == ignore_index ? 0.0F : sum.log() - static_cast<float>(from[index]);
}

template <class Number>
__global__ void write_gradients(Number* gradients, const Number* scores, const int64_t* target,
                                const float* log_sums, const float* factors, int64_t classes,
                                int64_t ignore_index) {
  const int64_t row = blockIdx.x, index = target[row];
  const float log_sum = log_sums[row], factor = factors[row];
  const Number* const from = scores + row * classes;
  Number* const to = gradients + row * classes;
  const auto gradient = [&](Number score, int64_t of) {
    if (index == ignore_index) return static_cast<Number>(0.0F);
    return static_cast<Number>(
        cross_entropy_gradient(static_cast<float>(score), log_sum, of == index, factor));
  };
  if (in_packs(from, classes) && in_packs(to, classes)) {
    constexpr int kCount = Pack<Number>::kCount;
    for (int64_t i = threadIdx.x; i < classes / kCount; i += kThreads) {
      Pack<Number> pack = reinterpret_cast<const Pack<Number>*>(from)[i];
      for (int k = 0; k < kCount; ++k) pack.numbers[k] = gradient(pack.numbers[k], i * kCount + k);
      reinterpret_cast<Pack<Number>*>(to)[i] = pack;
    }
  } else {
    for (int64_t i = threadIdx.x; i < classes; i += kThreads) to[i] = gradient(from[i], i);
  }
}

}  // namespace

template <class Number>
void sum_cross_entropies(float* losses, float* log_sums, const Number* scores, const int64_t* target,
                         int64_t rows, int64_t classes, int64_t ignore_index, cudaStream_t stream) {
  sum_rows<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(losses, log_sums, scores, target, classes,
                                                                 ignore_index);
}

template <class Number>
void write_cross_entropy_gradients(Number* gradients, const Number* scores, const int64_t* target,
                                   const float* log_sums, const float* factors, int64_t rows, int64_t classes,
                                   int64_t ignore_index, cudaStream_t stream) {
  write_gradients<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(gradients, scores, target, log_sums,
                                                                        factors, classes, ignore_index);
}

#define TUTTI_OF_NUMBERS(Number)                                                                     \
  template void sum_cross_entropies(float*, float*, const Number*, const int64_t*, int64_t, int64_t, \
                                    int64_t, cudaStream_t);                                          \
  template void write_cross_entropy_gradients(Number*, const Number*, const int64_t*, const float*,  \
                                              const float*, int64_t, int64_t, int64_t, cudaStream_t);
TUTTI_OF_NUMBERS(float)
TUTTI_OF_NUMBERS(__half)
TUTTI_OF_NUMBERS(__nv_bfloat16)
#undef TUTTI_OF_NUMBERS

}  // namespace tutti

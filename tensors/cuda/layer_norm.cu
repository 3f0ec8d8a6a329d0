#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <type_traits>

#include "tensors/cuda/kernels.h"

namespace tutti {
namespace {

// A block a row at a time, which it has in registers: `Quads` times four neighbouring columns a thread.
constexpr int kMostThreads = 256;
constexpr int kMostWarps = kMostThreads / 32;

struct alignas(16) Quad {
  float numbers[4];
};
template <class Number>
struct alignas(4 * sizeof(Number)) NarrowQuad {
  Number numbers[4];
};
struct Sums {
  float first = 0, second = 0;
};

// Over the threads of a block, the same for all of them. Calls in turn use other memory, so that one barrier
// a call suffices: who writes to memory has passed the barrier of the call between, after all have read it.
class BlockSums {
 public:
  __device__ explicit BlockSums(float2 (*memory)[kMostWarps]) : memory_(memory) {}

  __device__ Sums operator()(Sums own) {
    for (int half = 16; half > 0; half /= 2) {
      own.first += __shfl_xor_sync(0xffffffff, own.first, half);
      own.second += __shfl_xor_sync(0xffffffff, own.second, half);
    }
    float2* const warp_sums = memory_[calls_++ % 2];
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = make_float2(own.first, own.second);
    __syncthreads();
    Sums all;
    for (int warp = 0; warp < static_cast<int>(blockDim.x) / 32; ++warp) {
      all.first += warp_sums[warp].x;
      all.second += warp_sums[warp].y;
    }
    return all;
  }

 private:
  float2 (*memory_)[kMostWarps];
  int calls_ = 0;
};

// The place in a row of a thread's quad `q`.
__device__ int quad_of(int q) { return q * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x); }

template <int Quads>
__device__ void load(float (&to)[Quads][4], const float* row, int quads) {
  for (int q = 0; q < Quads; ++q) {
    const int quad = quad_of(q);
    const Quad loaded = quad < quads ? reinterpret_cast<const Quad*>(row)[quad] : Quad{};
    for (int i = 0; i < 4; ++i) to[q][i] = loaded.numbers[i];
  }
}

// Of columns that may not be aligned: weights.
template <int Quads>
__device__ void load_columns(float (&to)[Quads][4], const float* columns, int quads) {
  for (int q = 0; q < Quads; ++q) {
    const int quad = quad_of(q);
    for (int i = 0; i < 4; ++i) to[q][i] = quad < quads ? columns[4 * quad + i] : 0.0F;
  }
}

template <class Number, int Quads>
__global__ void normalise(Number* out, float* means, float* scales, const float* x, const float* weight,
                          const float* bias, int columns, float eps) {
  __shared__ float2 memory[2][kMostWarps];
  BlockSums sum_of_block(memory);
  const int64_t row = blockIdx.x;
  const int quads = columns / 4;
  float numbers[Quads][4];
  load(numbers, x + row * columns, quads);
  Sums own;
  for (int q = 0; q < Quads; ++q)
    for (int i = 0; i < 4; ++i) own.first += numbers[q][i];
  const float mean = sum_of_block(own).first / static_cast<float>(columns);
  Sums squares;
  for (int q = 0; q < Quads; ++q) {
    if (quad_of(q) >= quads) continue;
    for (int i = 0; i < 4; ++i) squares.first += (numbers[q][i] - mean) * (numbers[q][i] - mean);
  }
  const float variance = sum_of_block(squares).first / static_cast<float>(columns);
  const float scale = rsqrtf(variance + eps);
  if (threadIdx.x == 0) {
    means[row] = mean;
    scales[row] = scale;
  }
  for (int q = 0; q < Quads; ++q) {
    const int quad = quad_of(q);
    if (quad >= quads) continue;
    NarrowQuad<Number> result;
    for (int i = 0; i < 4; ++i)
      result.numbers[i] =
          static_cast<Number>((numbers[q][i] - mean) * scale * weight[4 * quad + i] + bias[4 * quad + i]);
    reinterpret_cast<NarrowQuad<Number>*>(out + row * columns)[quad] = result;
  }
}

// With n = (x - mean) * scale and g = gradient * weight: dx = scale * (g - mean(g) - n * mean(g * n)).
// `partial`: [2, blocks, columns], the sums of gradient * n and of gradient over the rows of a block.
template <class Number, int Quads>
__global__ void write_gradients(float* dx, float* partial, const Number* gradients, const float* x,
                                const float* means, const float* scales, const float* weight, int64_t rows,
                                int columns) {
  __shared__ float2 memory[2][kMostWarps];
  BlockSums sum_of_block(memory);
  const int quads = columns / 4;
  float weights[Quads][4], weight_sums[Quads][4] = {}, bias_sums[Quads][4] = {};
  load_columns(weights, weight, quads);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float mean = means[row], scale = scales[row];
    float normal[Quads][4], weighted[Quads][4];
    load(normal, x + row * columns, quads);
    Sums own;
    for (int q = 0; q < Quads; ++q) {
      const int quad = quad_of(q);
      NarrowQuad<Number> loaded = {};
      if (quad < quads) loaded = reinterpret_cast<const NarrowQuad<Number>*>(gradients + row * columns)[quad];
      for (int i = 0; i < 4; ++i) {
        const float gradient = static_cast<float>(loaded.numbers[i]);
        normal[q][i] = (normal[q][i] - mean) * scale;
        weighted[q][i] = gradient * weights[q][i];
        own.first += weighted[q][i];
        own.second += weighted[q][i] * normal[q][i];
        weight_sums[q][i] += gradient * normal[q][i];
        bias_sums[q][i] += gradient;
      }
    }
    const Sums all = sum_of_block(own);
    const float mean_of_weighted = all.first / static_cast<float>(columns),
                mean_of_product = all.second / static_cast<float>(columns);
    for (int q = 0; q < Quads; ++q) {
      const int quad = quad_of(q);
      if (quad >= quads) continue;
      Quad result;
      for (int i = 0; i < 4; ++i)
        result.numbers[i] = scale * (weighted[q][i] - mean_of_weighted - normal[q][i] * mean_of_product);
      reinterpret_cast<Quad*>(dx + row * columns)[quad] = result;
    }
  }
  float* const to_weight = partial + int64_t{blockIdx.x} * columns;
  float* const to_bias = to_weight + int64_t{gridDim.x} * columns;
  for (int q = 0; q < Quads; ++q) {
    const int quad = quad_of(q);
    if (quad >= quads) continue;
    for (int i = 0; i < 4; ++i) {
      to_weight[4 * quad + i] = weight_sums[q][i];
      to_bias[4 * quad + i] = bias_sums[q][i];
    }
  }
}

// Calls `launch` with the number of quads of a thread as a constant, and the threads of a block.
template <class Launch>
void with_quads(int columns, const Launch& launch) {
  const int threads = std::min(kMostThreads, (columns / 4 + 31) / 32 * 32);
  if (columns <= 4 * kMostThreads)
    launch(std::integral_constant<int, 1>(), threads);
  else if (columns <= 8 * kMostThreads)
    launch(std::integral_constant<int, 2>(), threads);
  else
    launch(std::integral_constant<int, 4>(), threads);
}

}  // namespace

template <class Number>
void normalise_rows(Number* out, float* means, float* scales, const float* x, const float* weight,
                    const float* bias, int64_t rows, int64_t columns, double eps, cudaStream_t stream) {
  with_quads(static_cast<int>(columns), [&](auto quads, int threads) {
    normalise<Number, decltype(quads)::value><<<static_cast<unsigned>(rows), threads, 0, stream>>>(
        out, means, scales, x, weight, bias, static_cast<int>(columns), static_cast<float>(eps));
  });
}

template <class Number>
void write_norm_gradients(float* dx, float* partial, int64_t blocks, const Number* gradients, const float* x,
                          const float* means, const float* scales, const float* weight, int64_t rows,
                          int64_t columns, cudaStream_t stream) {
  with_quads(static_cast<int>(columns), [&](auto quads, int threads) {
    write_gradients<Number, decltype(quads)::value><<<static_cast<unsigned>(blocks), threads, 0, stream>>>(
        dx, partial, gradients, x, means, scales, weight, rows, static_cast<int>(columns));
  });
}

#define TUTTI_OF_NUMBERS(Number)                                                                           \
  template void normalise_rows(Number*, float*, float*, const float*, const float*, const float*, int64_t, \
                               int64_t, double, cudaStream_t);                                             \
  template void write_norm_gradients(float*, float*, int64_t, const Number*, const float*, const float*,   \
                                     const float*, const float*, int64_t, int64_t, cudaStream_t);
TUTTI_OF_NUMBERS(__half)
TUTTI_OF_NUMBERS(__nv_bfloat16)
#undef TUTTI_OF_NUMBERS

}  // namespace tutti

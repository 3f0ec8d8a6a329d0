#include <algorithm>

#include "tensors/cuda/kernels.h"
#include "tensors/kernels/exact_digits.h"
#include "tensors/kernels/square_lanes.h"

namespace tutti {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = kSquareLanes;               // threads of a row
constexpr int kMostBlocks = 256;                   // each adds its digits to those of all
constexpr int kSpecial = kExactDigits;             // among digits and bins, infinities and NaN
constexpr int64_t kNotANumber = int64_t{1} << 32;  // among digits; 1: an infinity

unsigned blocks_of(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

__global__ void sum_rows(const float* numbers, int64_t rows, int64_t columns, double* sums) {
  const int64_t row = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / kLanes;
  if (row >= rows) return;
  const int lane = threadIdx.x % kLanes;
  const unsigned lanes_of_row = 0xFFFFu << (threadIdx.x % 32 / kLanes * kLanes);
  double sum = square_lane(numbers + row * columns, columns, lane);
  for (int half = kLanes / 2; half > 0; half /= 2) sum += __shfl_down_sync(lanes_of_row, sum, half, kLanes);
  if (lane == 0) sums[row] = sum;
}

// In the order of the columns, with both roundings.
__global__ void sum_rows(const double* numbers, int64_t rows, int64_t columns, double* sums) {
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  double sum = 0;
  for (int64_t i = 0; i < columns; ++i) {
    const double number = numbers[row * columns + i];
    sum = __dadd_rn(sum, __dmul_rn(number, number));
  }
  sums[row] = sum;
}

// The order of atomic additions of integers does not matter.
__device__ void add_to(int64_t* digit, int64_t value) {
  if (value != 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(digit), static_cast<unsigned long long>(value));
}

__global__ void add_digits(const double* numbers, int64_t count, int64_t* digits) {
  __shared__ int64_t block_digits[kExactDigits + 1];
  for (int d = threadIdx.x; d < kExactDigits + 1; d += kThreads) block_digits[d] = 0;
  __syncthreads();
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * kThreads) {
    const auto bits = static_cast<uint64_t>(__double_as_longlong(numbers[i]));
    if (power_of(bits) == kInfinitePower) {
      add_to(&block_digits[kSpecial], isinf(numbers[i]) && numbers[i] > 0 ? 1 : kNotANumber);
      continue;
    }
    const ExactDigits own = exact_digits(bits);
    add_to(&block_digits[own.first], own.low);
    add_to(&block_digits[own.first + 1], own.middle);
    add_to(&block_digits[own.first + 2], own.high);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < kExactDigits + 1; d += kThreads) add_to(&digits[d], block_digits[d]);
}

__global__ void add_to_all(double* bins, const int64_t* digits) {
  add_to_bins(bins, digits);
  if (digits[kSpecial] == 0) return;
  const bool is_infinite = digits[kSpecial] < kNotANumber;
  bins[kSpecial] += __longlong_as_double(is_infinite ? 0x7ff0'0000'0000'0000 : 0x7ff8'0000'0000'0000);
}

}  // namespace

void sum_squares_of_rows(const float* numbers, int64_t rows, int64_t columns, double* sums,
                         cudaStream_t stream) {
  sum_rows<<<blocks_of(rows * kLanes), kThreads, 0, stream>>>(numbers, rows, columns, sums);
}

void sum_squares_of_rows(const double* numbers, int64_t rows, int64_t columns, double* sums,
                         cudaStream_t stream) {
  sum_rows<<<blocks_of(rows), kThreads, 0, stream>>>(numbers, rows, columns, sums);
}

void add_exactly(double* bins, int64_t* digits, const double* numbers, int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  const unsigned blocks = std::min<unsigned>(kMostBlocks, blocks_of(count));
  add_digits<<<blocks, kThreads, 0, stream>>>(numbers, count, digits);
  add_to_all<<<1, 1, 0, stream>>>(bins, digits);
}

}  // namespace tutti

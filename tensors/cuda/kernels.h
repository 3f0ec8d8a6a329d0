#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "runtime/random.h"

// Launchers of kernels with the numbers of the functions for CPUs of the same name. Pointers are to memory of
// the device; the host does not wait.

namespace tutti {

// Sums of the squares of rows of at least one number, one behind the other: as row_squares (tensors/norms.h).
void sum_squares_of_rows(const float* numbers, int64_t rows, int64_t columns, double* sums,
                         cudaStream_t stream);
void sum_squares_of_rows(const double* numbers, int64_t rows, int64_t columns, double* sums,
                         cudaStream_t stream);

// Adds numbers to `bins`, an ExactSum's. `digits`: as many zeros, for the kernels' own use.
void add_exactly(double* bins, int64_t* digits, const double* numbers, int64_t count, cudaStream_t stream);

// Ranges [begins[i], ends[i]) of bytes, whose digest's sums are added to row i of `sums`, two numbers each:
// as add_digest_sums_on_cpus (tensors/digests.cpp).
void add_digest_sums(uint64_t* sums, const uint8_t* bytes, const int64_t* begins, const int64_t* ends,
                     int64_t ranges, cudaStream_t stream);

// `size` numbers for each of the samples, of which the first has place `first_place`: as bernoullis
// (tensors/draws.h), each true with the probability `below` / 2^32. `key`: of the device, or null.
void draw_bernoullis(bool* drawn, int64_t samples, int64_t size, const int64_t* key, int64_t batch_state,
                     int64_t first_place, uint64_t below, cudaStream_t stream);

// Of scores [rows, classes], float, __half or __nv_bfloat16: as cross_entropy_of_rows
// (tensors/fused/cross_entropy.h).
template <class Number>
void sum_cross_entropies(float* losses, float* log_sums, const Number* scores, const int64_t* target,
                         int64_t rows, int64_t classes, int64_t ignore_index, cudaStream_t stream);
// Each row's times its factor.
template <class Number>
void write_cross_entropy_gradients(Number* gradients, const Number* scores, const int64_t* target,
                                   const float* log_sums, const float* factors, int64_t rows, int64_t classes,
                                   int64_t ignore_index, cudaStream_t stream);

// Of x [rows, columns] with 16 bits in `out`, __half or __nv_bfloat16: as narrow_layer_norm
// (tensors/fused/layer_norm.h). Columns are a multiple of 4, and 4,096 at most; x, out, and the gradients of
// both are aligned to 4 numbers.
template <class Number>
void normalise_rows(Number* out, float* means, float* scales, const float* x, const float* weight,
                    const float* bias, int64_t rows, int64_t columns, double eps, cudaStream_t stream);
// `partial`: [2, blocks, columns], whose sums over blocks are the gradients of weight and bias.
template <class Number>
void write_norm_gradients(float* dx, float* partial, int64_t blocks, const Number* gradients, const float* x,
                          const float* means, const float* scales, const float* weight, int64_t rows,
                          int64_t columns, cudaStream_t stream);

}  // namespace tutti

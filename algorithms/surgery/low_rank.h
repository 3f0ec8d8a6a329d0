#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/layers/conv.h"

namespace tutti {

// Two linear maps in place of one. Unused tensors are undefined.
struct LowRankSolution {
  at::Tensor Wa;      // [in, rank]; of a convolution [rank, in, kernel]
  at::Tensor Wb;      // [rank, out], or [out, rank, 1, 1]; undefined: Wa does all
  at::Tensor bias;    // [out]
  int64_t rank = -1;  // -1: not factorized
  double nmse = 0;    // mean squared error of the outputs, over their variance
};

// Approximates a matrix `Wa` [in, out], or a product Wa Wb, by a product of a lower rank, so that x Wa Wb +
// bias is close to y = x W + bias for the inputs x [N, in]; y is [N, out]. Starts from the singular value
// decomposition, then solves for each factor in turn, `n_iters` times. A rank below 1 is a fraction of `in`.
// If rank >= min(in, out), the matrix is not factorized. composer.algorithms.factorize.factorize_matrix.
LowRankSolution factorize_matrix(const at::Tensor& x, const at::Tensor& y, const at::Tensor& Wa,
                                 const at::Tensor& Wb = {}, const at::Tensor& bias = {}, double rank = 0.25,
                                 int64_t n_iters = 3);

// The weights of one convolution, or of two successive ones, the second 1 x 1.
struct ConvFactors {
  at::Tensor Wa;     // [out, in, kernel], or [latent, in, kernel]
  at::Tensor Wb;     // [out, latent, 1, 1], or undefined
  at::Tensor biasA;  // undefined = none
  at::Tensor biasB;
};

// The same for a convolution of stride and dilation 1, in one group, over images x [N, in, H, W]: the first
// factor keeps the kernel, the second is 1 x 1. A rank below 1 is a fraction of the inputs of a kernel.
// composer.algorithms.factorize.factorize_conv2d.
LowRankSolution factorize_conv2d(const at::Tensor& x, const ConvFactors& factors, double rank = 0.25,
                                 int64_t n_iters = 3, Extent2d padding = 0);

}  // namespace tutti

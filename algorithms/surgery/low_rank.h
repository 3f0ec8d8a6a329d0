#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/layers/conv.h"

namespace tutti {

// Two linear maps in place of one. Tensors are undefined where there is nothing to say.
struct LowRankSolution {
  at::Tensor Wa;      // [in, rank]; of a convolution [rank, in, kernel]
  at::Tensor Wb;      // [rank, out], or [out, rank, 1, 1]; undefined: Wa does all
  at::Tensor bias;    // [out]
  int64_t rank = -1;  // -1: the map was left in one, or as it was
  double nmse = 0;    // mean squared error of the outputs, over their variance
};

// Approximates a matrix `Wa` [in, out], or Wa Wb of a higher rank, by a product of a lower rank, so that
// x Wa Wb + bias comes near y for the inputs x [N, in] and outputs y [N, out] = x W + bias. Begins with the
// singular value decomposition, then solves for either factor in turn, `n_iters` times. A rank below 1 is a
// part of `in`. What cannot be made smaller so is left in one: a rank of `in` or `out` and more.
// composer.algorithms.factorize.factorize_matrix.
LowRankSolution factorize_matrix(const at::Tensor& x, const at::Tensor& y, const at::Tensor& Wa,
                                 const at::Tensor& Wb = {}, const at::Tensor& bias = {}, double rank = 0.25,
                                 int64_t n_iters = 3);

// The weights of a convolution, or of two in turn, of which the second is 1 x 1.
struct ConvFactors {
  at::Tensor Wa;     // [out, in, kernel], or [latent, in, kernel]
  at::Tensor Wb;     // [out, latent, 1, 1], or undefined
  at::Tensor biasA;  // undefined = none
  at::Tensor biasB;
};

// The same for a convolution of stride and dilation 1, in one group, over images x [N, in, H, W]: the first
// factor has its kernel, the second is 1 x 1. A rank below 1 is a part of the numbers under a kernel.
// composer.algorithms.factorize.factorize_conv2d.
LowRankSolution factorize_conv2d(const at::Tensor& x, const ConvFactors& factors, double rank = 0.25,
                                 int64_t n_iters = 3, Extent2d padding = 0);

}  // namespace tutti

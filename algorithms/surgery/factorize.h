#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "algorithms/surgery/options.h"
#include "models/layers/conv.h"
#include "models/layers/layer.h"
#include "training/engine/algorithm.h"

namespace tutti {

// Two linear maps in place of one. Unused tensors are undefined.
struct LowRankSolution {
  at::Tensor Wa;      // [in, rank]; of a convolution [rank, in, kernel]
  at::Tensor Wb;      // [rank, out], or [out, rank, 1, 1]; undefined: Wa is the whole weight
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

// The weights of one convolution, or of two successive convolutions, the second 1 x 1.
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

// The size that `latent` stands for: `latent` if >= 1, else that fraction of min(in, out), at least 1.
int64_t latent_size(double latent, int64_t in, int64_t out);
// The largest latent size that needs fewer multiplications than the plain layer.
int64_t max_rank_with_possible_speedup(int64_t in, int64_t out, const Extent2d& kernel_size = 1);
// True if a Linear, a Conv2d of one group, or a factorized layer would have fewer multiplications with the
// latent size. False for other layers.
bool factorizing_could_speedup(const Layer& layer, double latent);

// Two Linears in turn, "module0" [latent, in] without a bias and "module1" [out, latent], with the initial
// values of Linear. composer's FactorizedLinear.
class FactorizedLinear final : public Layer {
 public:
  FactorizedLinear(int64_t in, int64_t out, bool bias, double latent);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "FactorizedLinear"; }
  int64_t latent_features() const;

  // Lowers the latent size to `rank` by factorize_matrix on inputs [N, in]. "module1" then has a bias. Throws
  // UserError if the rank is higher than the latent size.
  void set_rank(const at::Tensor& input, int64_t rank);

 private:
  Slot& module0_;
  Slot& module1_;
};

// Two convolutions in turn, "module0" with the kernel, stride, padding and dilation of `options`, without a
// bias, and "module1" 1 x 1, with a bias, with the initial values of torch.nn.Conv2d. composer's
// FactorizedConv2d.
class FactorizedConv2d final : public Layer {
 public:
  FactorizedConv2d(const Conv2dOptions& options, double latent);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "FactorizedConv2d"; }
  int64_t latent_channels() const;

  // As FactorizedLinear::set_rank, by factorize_conv2d on images. Standardized weights become plain ones.
  // Throws UserError for strides and dilations other than 1.
  void set_rank(const at::Tensor& input, int64_t rank);

 private:
  Slot& module0_;
  Slot& module1_;
};

struct Factorized {
  int convs = 0;
  int linears = 0;
};

// Replaces each Conv2d and Linear of a model that is wide enough and could be faster by a factorized layer.
// The new layers have new weights: call materialise afterwards. composer.functional.apply_factorization.
Factorized apply_factorization(Layer& model, const FactorizeOptions& options = {});

// apply_factorization at INIT. composer.algorithms.Factorize; its defaults differ from the function's.
class Factorize final : public Algorithm {
 public:
  explicit Factorize(const FactorizeOptions& options = FactorizeAlgorithm()) : options_(options) {}

  std::string name() const override { return "Factorize"; }
  Needs needs() const override {
    return {.after = {"GatedLinearUnits", "SqueezeExcite"}, .required_on_load = true};
  }
  bool match(Event event, const State&) const override { return event == Event::kInit; }
  // Logs "factorize/num_conv2d_replacements" and "factorize/num_linear_replacements".
  void apply(Event event, State& state, Logger& logger) override;

 private:
  FactorizeOptions options_;
};

}  // namespace tutti

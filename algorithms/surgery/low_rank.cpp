#include "algorithms/surgery/low_rank.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/linalg_lstsq.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

at::Tensor least_squares(const at::Tensor& a, const at::Tensor& b) {
  return std::get<0>(at::linalg_lstsq(a, b));
}

std::pair<at::Tensor, at::Tensor> singular_factors(const at::Tensor& w, int64_t rank) {
  const auto [u, s, vt] = at::linalg_svd(w, /*full_matrices=*/false);
  const at::Tensor root = s.narrow(0, 0, rank).sqrt();
  return {u.narrow(1, 0, rank) * root, vt.narrow(0, 0, rank) * root.unsqueeze(1)};
}

// [N, C, H, W] to the numbers under the kernel at each place, [N places, C kernel].
at::Tensor patches(const at::Tensor& images, at::IntArrayRef kernel, const Extent2d& padding) {
  const at::Tensor columns = at::im2col(images, kernel, {1, 1}, padding.dims(), {1, 1}).transpose(1, 2);
  return columns.reshape({-1, columns.size(2)});
}

at::Tensor matrix_of(const at::Tensor& weight) { return weight.reshape({weight.size(0), -1}).t(); }

at::Tensor weight_of(const at::Tensor& matrix, at::IntArrayRef kernel) {
  if (!matrix.defined()) return matrix;
  return matrix.t().reshape({matrix.size(1), -1, kernel[0], kernel[1]});
}

at::Tensor plus(const at::Tensor& y, const at::Tensor& bias) { return bias.defined() ? y + bias : y; }

}  // namespace

LowRankSolution factorize_matrix(const at::Tensor& x, const at::Tensor& y, const at::Tensor& Wa,
                                 const at::Tensor& Wb, const at::Tensor& bias, double rank, int64_t n_iters) {
  const at::NoGradGuard no_grad;
  const int64_t in = x.size(1), part = static_cast<int64_t>(rank * static_cast<double>(in));
  const int64_t k = rank < 1 ? std::min(part, Wa.size(1)) : static_cast<int64_t>(rank);
  const at::Tensor target = bias.defined() ? y - bias : y;
  if (k >= in || k >= y.size(1)) return {.Wa = least_squares(x, target), .bias = bias};
  if (k >= Wa.size(1)) return {.Wa = Wa, .Wb = Wb, .bias = bias};
  auto [a, b] = singular_factors(Wb.defined() ? at::matmul(Wa, Wb) : Wa, k);
  const at::Tensor best = least_squares(x, target);
  for (int64_t i = 0; i < n_iters; ++i) {
    b = least_squares(at::matmul(x, a), target);
    a = least_squares(b.t(), best.t()).t();
  }
  const at::Tensor fitted = at::matmul(at::matmul(x, a), b);
  const at::Tensor shift = plus((target - fitted).mean(0), bias);
  const double error = (target - (fitted + shift)).square().mean().item<double>();
  return {.Wa = a, .Wb = b, .bias = shift, .rank = k, .nmse = error / target.var().item<double>()};
}

LowRankSolution factorize_conv2d(const at::Tensor& x, const ConvFactors& factors, double rank,
                                 int64_t n_iters, Extent2d padding) {
  if (factors.biasB.defined() && !factors.Wb.defined())
    throw UserError("factorize_conv2d: biasB belongs to Wb, which is not given");
  const at::NoGradGuard no_grad;
  const at::IntArrayRef kernel = factors.Wa.sizes().slice(2);
  const at::Tensor rows = patches(x, kernel, padding), a = matrix_of(factors.Wa);
  const at::Tensor b = factors.Wb.defined() ? matrix_of(factors.Wb) : at::Tensor();
  at::Tensor y = plus(at::matmul(rows, a), factors.biasA);
  if (b.defined()) y = plus(at::matmul(y, b), factors.biasB);
  LowRankSolution solution = factorize_matrix(rows, y, a, b, {}, rank, n_iters);
  solution.Wa = weight_of(solution.Wa, kernel);
  solution.Wb = weight_of(solution.Wb, {1, 1});
  return solution;
}

}  // namespace tutti

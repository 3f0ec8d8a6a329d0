#include "models/layers/linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>

#include <cmath>

namespace tutti {

Init constant_init(double value) {
  return [value](at::Tensor& tensor, const at::Generator&) { tensor.fill_(value); };
}

Init normal_init(double standard_deviation) {
  return [=](at::Tensor& tensor, at::Generator generator) {
    tensor.normal_(0.0, standard_deviation, std::move(generator));
  };
}

Init uniform_init(double bound) {
  return [bound](at::Tensor& tensor, at::Generator generator) {
    tensor.uniform_(-bound, bound, std::move(generator));
  };
}

Init kaiming_uniform_init(int64_t fan_in) {
  return uniform_init(1.0 / std::sqrt(static_cast<double>(fan_in)));
}

Init kaiming_normal_init(int64_t fan_out) {
  return normal_init(std::sqrt(2.0 / static_cast<double>(fan_out)));
}

Linear::Linear(int64_t in, int64_t out, bool bias)
    : weight_(add_parameter("weight", {out, in}, kaiming_uniform_init(in))),
      bias_(bias ? &add_parameter("bias", {out}, kaiming_uniform_init(in)) : nullptr) {}

TensorTree Linear::forward(const TensorTree& input) {
  return at::linear(input.tensor(), weight_.tensor, bias_ ? bias_->tensor : at::Tensor());
}

Conv1D::Conv1D(int64_t in, int64_t out, double standard_deviation)
    : weight_(add_parameter("weight", {in, out}, normal_init(standard_deviation))),
      bias_(add_parameter("bias", {out}, constant_init(0.0))) {}

TensorTree Conv1D::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  if (x.dim() == 2) return at::addmm(bias_.tensor, x, weight_.tensor);
  Shape shape = x.sizes().vec();
  const at::Tensor rows = x.reshape({-1, shape.back()});
  shape.back() = weight_.tensor.size(1);
  return at::addmm(bias_.tensor, rows, weight_.tensor).view(shape);
}

Embedding::Embedding(int64_t rows, int64_t features, double standard_deviation)
    : weight_(add_parameter("weight", {rows, features}, normal_init(standard_deviation))) {}

TensorTree Embedding::forward(const TensorTree& indices) {
  return at::embedding(weight_.tensor, indices.tensor());
}

}  // namespace tutti

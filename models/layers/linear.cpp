#include "models/layers/linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/linear.h>

#include "models/layers/initial.h"

namespace tutti {

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

}  // namespace tutti

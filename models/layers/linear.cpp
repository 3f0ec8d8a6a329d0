#include "models/layers/linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>

#include <cmath>

namespace tutti {
namespace {

Shape weight_shape(const Conv2dOptions& o) {
  return {o.out_channels, o.in_channels / o.groups, o.kernel_size, o.kernel_size};
}

constexpr int64_t kLargestVector = 16;  // float32 numbers in an AVX-512 register

int64_t kernel_area(const Conv2dOptions& o) { return o.kernel_size * o.kernel_size; }

}  // namespace

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

Conv2d::Conv2d(const Conv2dOptions& options)
    : options_(options),
      weight_(add_parameter("weight", weight_shape(options),
                            kaiming_normal_init(options.out_channels * kernel_area(options)))),
      bias_(options.bias ? &add_parameter("bias", {options.out_channels},
                                          kaiming_uniform_init(options.in_channels / options.groups *
                                                               kernel_area(options)))
                         : nullptr) {}

// Backward of a strided 1x1 convolution writes out of bounds in oneDNN if the channels are fewer than a
// vector register holds (oneDNN issue 6035; libtorch 2.11 on CPUs). Here the input is strided before the
// convolution instead.
TensorTree Conv2d::forward(const TensorTree& input) {
  const bool strided_1x1 = options_.kernel_size == 1 && options_.stride > 1 && options_.padding == 0;
  const bool stride_first = strided_1x1 && options_.in_channels / options_.groups < kLargestVector;
  at::Tensor images = input.tensor();
  if (stride_first)
    for (const int64_t dim : {-1, -2}) images = images.slice(dim, 0, std::nullopt, options_.stride);
  return at::conv2d(images, weight_.tensor, bias_ ? bias_->tensor : at::Tensor(),
                    stride_first ? 1 : options_.stride, options_.padding, 1, options_.groups);
}

Embedding::Embedding(int64_t rows, int64_t features, double standard_deviation)
    : weight_(add_parameter("weight", {rows, features}, normal_init(standard_deviation))) {}

TensorTree Embedding::forward(const TensorTree& indices) {
  return at::embedding(weight_.tensor, indices.tensor());
}

}  // namespace tutti

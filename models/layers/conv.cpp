#include "models/layers/conv.h"

#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>

#include "models/layers/linear.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int64_t kLargestVector = 16;  // float32 numbers in an AVX-512 register

Shape weight_shape(const Conv2dOptions& o) {
  return {o.out_channels, o.in_channels / o.groups, o.kernel_size.height, o.kernel_size.width};
}

at::Tensor bias_of(const Parameter* bias) { return bias ? bias->tensor : at::Tensor(); }

}  // namespace

Conv2d::Conv2d(const Conv2dOptions& options)
    : options_(options),
      weight_(add_parameter("weight", weight_shape(options),
                            kaiming_normal_init(options.out_channels * options.kernel_size.area()))),
      bias_(options.bias ? &add_parameter("bias", {options.out_channels},
                                          kaiming_uniform_init(options.in_channels / options.groups *
                                                               options.kernel_size.area()))
                         : nullptr) {}

Conv2d::Conv2d(const Conv2dOptions& options, const Conv2d& adopted)
    : options_(options),
      weight_(adopt(adopted.weight())),
      bias_(adopted.bias() ? &adopt(*adopted.bias()) : nullptr) {
  TUTTI_ASSERT(weight_.tensor.sizes() == weight_shape(options) && options.bias == (bias_ != nullptr),
               "the convolution has parameters of other shapes");
}

// Backward of a strided 1x1 convolution writes out of bounds in oneDNN if the channels are fewer than a
// vector register holds (oneDNN issue 6035; libtorch 2.11 on CPUs). Here the input is strided before the
// convolution instead.
TensorTree Conv2d::forward(const TensorTree& input) {
  const Conv2dOptions& o = options_;
  const bool strided_1x1 = o.kernel_size == 1 && o.stride != 1 && o.padding == 0;
  const bool stride_first = strided_1x1 && o.in_channels / o.groups < kLargestVector;
  at::Tensor images = input.tensor();
  if (stride_first)
    images = images.slice(-1, 0, std::nullopt, o.stride.width).slice(-2, 0, std::nullopt, o.stride.height);
  const Extent2d stride = stride_first ? 1 : o.stride;
  return at::conv2d(images, weight_.tensor, bias_of(bias_), stride.dims(), o.padding.dims(),
                    o.dilation.dims(), o.groups);
}

Conv1d::Conv1d(const Conv1dOptions& options)
    : options_(options),
      weight_(add_parameter(
          "weight", {options.out_channels, options.in_channels / options.groups, options.kernel_size},
          kaiming_uniform_init(options.in_channels / options.groups * options.kernel_size))),
      bias_(options.bias ? &add_parameter("bias", {options.out_channels},
                                          kaiming_uniform_init(options.in_channels / options.groups *
                                                               options.kernel_size))
                         : nullptr) {}

TensorTree Conv1d::forward(const TensorTree& input) {
  const Conv1dOptions& o = options_;
  return at::conv1d(input.tensor(), weight_.tensor, bias_of(bias_), o.stride, o.padding, o.dilation,
                    o.groups);
}

}  // namespace tutti

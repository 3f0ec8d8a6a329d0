#include "models/layers/conv.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/conv_transpose2d.h>

#include <functional>
#include <numeric>

#include "models/layers/linear.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int64_t kLargestVector = 16;  // float32 numbers in an AVX-512 register

Shape weight_shape(const Conv2dOptions& o) {
  return {o.out_channels, o.in_channels / o.groups, o.kernel_size.height, o.kernel_size.width};
}

Shape weight_shape(const Conv1dOptions& o) {
  return {o.out_channels, o.in_channels / o.groups, o.kernel_size};
}

Shape weight_shape(const Conv3dOptions& o) {
  return {o.out_channels, o.in_channels / o.groups, o.kernel_size[0], o.kernel_size[1], o.kernel_size[2]};
}

// Numbers that an output is a sum over.
int64_t inputs_of_an_output(const Shape& weight) {
  return std::accumulate(weight.begin() + 1, weight.end(), int64_t{1}, std::multiplies<>());
}

// A single pixel in and out: only the middle of the kernel sees it, the rest sees padding.
bool is_one_pixel(const at::Tensor& images, const Conv2dOptions& o) {
  return images.size(-1) == 1 && images.size(-2) == 1 &&
         2 * o.padding.height == o.dilation.height * (o.kernel_size.height - 1) &&
         2 * o.padding.width == o.dilation.width * (o.kernel_size.width - 1);
}

}  // namespace

Convolution::Convolution(const Shape& weight, bool bias, Init init)
    : weight_(
          add_parameter("weight", weight, init ? init : kaiming_uniform_init(inputs_of_an_output(weight)))),
      bias_(bias ? &add_parameter("bias", {weight[0]}, kaiming_uniform_init(inputs_of_an_output(weight)))
                 : nullptr) {}

Convolution::Convolution(const Shape& weight, bool bias, const Convolution& adopted)
    : weight_(adopt(adopted.weight())),
      bias_(adopted.bias() ? &adopt(*adopted.bias()) : nullptr),
      rule_(adopted.weight_rule()) {
  TUTTI_ASSERT(weight_.tensor.sizes() == weight && bias == (bias_ != nullptr),
               "the convolution has parameters of other shapes");
}

Conv2d::Conv2d(const Conv2dOptions& options)
    : Convolution(weight_shape(options), options.bias,
                  kaiming_normal_init(options.out_channels * options.kernel_size.area())),
      options_(options) {}

Conv2d::Conv2d(const Conv2dOptions& options, const Conv2d& adopted)
    : Convolution(weight_shape(options), options.bias, adopted), options_(options) {}

// Backward of a strided 1x1 convolution writes out of bounds in oneDNN if the channels are fewer than a
// vector register holds (oneDNN issue 6035; libtorch 2.11 on CPUs). Here the input is strided before the
// convolution instead.
//
// Backward of a strided convolution of a single pixel in bfloat16 leaves the gradient of the kernel unwritten
// where it sees padding (also of libtorch 2.11 on CPUs). Here only the middle of the kernel takes part.
TensorTree Conv2d::forward(const TensorTree& input) {
  const Conv2dOptions& o = options_;
  const bool strided_1x1 = o.kernel_size == 1 && o.stride != 1 && o.padding == 0;
  const bool stride_first = strided_1x1 && o.in_channels / o.groups < kLargestVector;
  at::Tensor images = input.tensor();
  if (stride_first)
    images = images.slice(-1, 0, std::nullopt, o.stride.width).slice(-2, 0, std::nullopt, o.stride.height);
  const bool is_low =
      at::autocast::is_autocast_enabled(images.device().type()) || images.scalar_type() == at::kBFloat16;
  if (is_low && images.is_cpu() && o.stride != 1 && o.kernel_size != 1 && is_one_pixel(images, o)) {
    const at::Tensor middle =
        kernel().narrow(2, o.kernel_size.height / 2, 1).narrow(3, o.kernel_size.width / 2, 1);
    return at::conv2d(images, middle, bias_or_none(), Shape{1, 1}, Shape{0, 0}, Shape{1, 1}, o.groups);
  }
  const Extent2d stride = stride_first ? 1 : o.stride;
  return at::conv2d(images, kernel(), bias_or_none(), stride.dims(), o.padding.dims(), o.dilation.dims(),
                    o.groups);
}

ConvTranspose2d::ConvTranspose2d(const ConvTranspose2dOptions& o)
    : options_(o),
      weight_(add_parameter(
          "weight", {o.in_channels, o.out_channels / o.groups, o.kernel_size.height, o.kernel_size.width},
          kaiming_uniform_init(o.out_channels / o.groups * o.kernel_size.area()))),
      bias_(o.bias ? &add_parameter("bias", {o.out_channels},
                                    kaiming_uniform_init(o.out_channels / o.groups * o.kernel_size.area()))
                   : nullptr) {}

TensorTree ConvTranspose2d::forward(const TensorTree& input) {
  const ConvTranspose2dOptions& o = options_;
  return at::conv_transpose2d(input.tensor(), weight_.tensor, bias_ ? bias_->tensor : at::Tensor(),
                              o.stride.dims(), o.padding.dims(), o.output_padding.dims(), o.groups,
                              o.dilation.dims());
}

Conv1d::Conv1d(const Conv1dOptions& options)
    : Convolution(weight_shape(options), options.bias), options_(options) {}

TensorTree Conv1d::forward(const TensorTree& input) {
  const Conv1dOptions& o = options_;
  return at::conv1d(input.tensor(), kernel(), bias_or_none(), o.stride, o.padding, o.dilation, o.groups);
}

Conv3d::Conv3d(const Conv3dOptions& options)
    : Convolution(weight_shape(options), options.bias), options_(options) {}

TensorTree Conv3d::forward(const TensorTree& input) {
  const Conv3dOptions& o = options_;
  return at::conv3d(input.tensor(), kernel(), bias_or_none(), o.stride, o.padding, o.dilation, o.groups);
}

}  // namespace tutti

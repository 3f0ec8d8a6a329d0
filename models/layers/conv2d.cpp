#include "models/layers/conv2d.h"

#include <ATen/ops/conv2d.h>

#include "models/layers/initial.h"

namespace tutti {
namespace {

Shape weight_shape(const Conv2dOptions& o) {
  return {o.out_channels, o.in_channels / o.groups, o.kernel_size, o.kernel_size};
}

constexpr int64_t kLargestVector = 16;  // float32, of AVX-512

int64_t window(const Conv2dOptions& o) { return o.kernel_size * o.kernel_size; }

}  // namespace

Conv2d::Conv2d(const Conv2dOptions& options)
    : options_(options),
      weight_(add_parameter("weight", weight_shape(options),
                            kaiming_normal_init(options.out_channels * window(options)))),
      bias_(options.bias
                ? &add_parameter("bias", {options.out_channels},
                                 kaiming_uniform_init(options.in_channels / options.groups * window(options)))
                : nullptr) {}

// oneDNN writes behind its buffers in the backward of a strided 1x1 convolution of fewer channels than a
// vector holds (oneDNN issue 6035; libtorch 2.11 on CPUs). What the stride leaves out can as well go before.
TensorTree Conv2d::forward(const TensorTree& input) {
  const bool strided_point = options_.kernel_size == 1 && options_.stride > 1 && options_.padding == 0;
  const bool thins = strided_point && options_.in_channels / options_.groups < kLargestVector;
  at::Tensor images = input.tensor();
  if (thins)
    for (const int64_t dim : {-1, -2}) images = images.slice(dim, 0, std::nullopt, options_.stride);
  return at::conv2d(images, weight_.tensor, bias_ ? bias_->tensor : at::Tensor(), thins ? 1 : options_.stride,
                    options_.padding, 1, options_.groups);
}

}  // namespace tutti

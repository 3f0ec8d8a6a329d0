#include "models/layers/conv2d.h"

#include <ATen/ops/conv2d.h>

#include "models/layers/initial.h"

namespace tutti {
namespace {

Shape weight_shape(const Conv2dOptions& o) {
  return {o.out_channels, o.in_channels / o.groups, o.kernel_size, o.kernel_size};
}

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

TensorTree Conv2d::forward(const TensorTree& input) {
  return at::conv2d(input.tensor(), weight_.tensor, bias_ ? bias_->tensor : at::Tensor(), options_.stride,
                    options_.padding, 1, options_.groups);
}

}  // namespace tutti

#include "models/layers/pool.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mean.h>

namespace tutti {

TensorTree AdaptiveAvgPool2d::forward(const TensorTree& input) {
  if (size_ == 1) return at::mean(input.tensor(), {2, 3}, /*keepdim=*/true);
  return at::adaptive_avg_pool2d(input.tensor(), size_.dims());
}

TensorTree MaxPool2d::forward(const TensorTree& input) {
  const MaxPool2dOptions& o = options_;
  return at::max_pool2d(input.tensor(), o.kernel_size.dims(), o.stride.dims(), o.padding.dims(),
                        o.dilation.dims(), o.ceil_mode);
}

TensorTree AvgPool2d::forward(const TensorTree& input) {
  const AvgPool2dOptions& o = options_;
  return at::avg_pool2d(input.tensor(), o.kernel_size.dims(), o.stride.dims(), o.padding.dims(), o.ceil_mode,
                        o.counts_padding);
}

}  // namespace tutti

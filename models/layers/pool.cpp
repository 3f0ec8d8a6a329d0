#include "models/layers/pool.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>

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

TensorTree Upsample::forward(const TensorTree& input) {
  using Mode = UpsampleOptions::Mode;
  const at::Tensor& x = input.tensor();
  const std::array<int64_t, 2> dims = options_.size.value_or(1).dims();
  const auto size = options_.size ? at::OptionalIntArrayRef(dims) : std::nullopt;
  const auto& scale = options_.scale_factor;
  const auto scales = scale ? std::optional<at::ArrayRef<double>>(*scale) : std::nullopt;
  if (options_.mode == Mode::kNearest) return at::upsample_nearest2d(x, size, scales);
  if (options_.mode == Mode::kBilinear)
    return at::upsample_bilinear2d(x, size, options_.align_corners, scales);
  return at::upsample_bicubic2d(x, size, options_.align_corners, scales);
}

}  // namespace tutti

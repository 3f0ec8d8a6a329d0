#include "models/layers/pool.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mean.h>

namespace tutti {

TensorTree AdaptiveAvgPool2d::forward(const TensorTree& input) {
  return at::mean(input.tensor(), {2, 3}, /*keepdim=*/true);
}

TensorTree MaxPool2d::forward(const TensorTree& input) {
  return at::max_pool2d(input.tensor(), {size_, size_}, {stride_, stride_}, {padding_, padding_});
}

TensorTree AvgPool2d::forward(const TensorTree& input) {
  return at::avg_pool2d(input.tensor(), {size_, size_}, {stride_, stride_}, {padding_, padding_},
                        /*ceil_mode=*/false, counts_padding_);
}

}  // namespace tutti

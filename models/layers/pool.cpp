#include "models/layers/pool.h"

#include <ATen/ops/mean.h>

namespace tutti {

TensorTree AdaptiveAvgPool2d::forward(const TensorTree& input) {
  return at::mean(input.tensor(), {2, 3}, /*keepdim=*/true);
}

}  // namespace tutti

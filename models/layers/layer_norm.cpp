#include "models/layers/layer_norm.h"

#include <ATen/ops/layer_norm.h>

#include "models/layers/initial.h"

namespace tutti {

LayerNorm::LayerNorm(int64_t features, double eps)
    : weight_(add_parameter("weight", {features}, constant_init(1.0))),
      bias_(add_parameter("bias", {features}, constant_init(0.0))),
      eps_(eps) {}

TensorTree LayerNorm::forward(const TensorTree& input) {
  return at::layer_norm(input.tensor(), weight_.tensor.sizes(), weight_.tensor, bias_.tensor, eps_);
}

}  // namespace tutti

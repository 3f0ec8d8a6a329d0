#include "models/layers/embedding.h"

#include <ATen/ops/embedding.h>

#include "models/layers/initial.h"

namespace tutti {

Embedding::Embedding(int64_t rows, int64_t features, double standard_deviation)
    : weight_(add_parameter("weight", {rows, features}, normal_init(standard_deviation))) {}

TensorTree Embedding::forward(const TensorTree& indices) {
  return at::embedding(weight_.tensor, indices.tensor());
}

}  // namespace tutti

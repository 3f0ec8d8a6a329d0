#include "models/layers/dropout.h"

#include <ATen/ops/dropout.h>

namespace tutti {

TensorTree Dropout::forward(const TensorTree& input) {
  if (p_ == 0.0 || !context().training) return input;
  return at::dropout(input.tensor(), p_, true);
}

}  // namespace tutti

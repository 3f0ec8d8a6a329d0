#pragma once

#include "models/layers/layer.h"

namespace tutti {

// All dimensions but the first become one: [N, ...] to [N, values].
class Flatten final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override { return input.tensor().flatten(1); }
  const char* kind() const override { return "Flatten"; }
};

}  // namespace tutti

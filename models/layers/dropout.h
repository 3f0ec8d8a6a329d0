#pragma once

#include "models/layers/layer.h"

namespace tutti {

// Zeroes values with probability p in training and scales the rest by 1 / (1 - p); draws from the default
// generator.
class Dropout final : public Layer {
 public:
  explicit Dropout(double p) : p_(p) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Dropout"; }
  double p() const { return p_; }

 private:
  double p_;
};

}  // namespace tutti

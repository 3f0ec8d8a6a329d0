#pragma once

#include "models/layers/layer.h"

namespace tutti {

// Rows of a table [rows, features] by integer index; initially normal.
class Embedding final : public Layer {
 public:
  Embedding(int64_t rows, int64_t features, double standard_deviation = 0.02);
  TensorTree forward(const TensorTree& indices) override;
  const char* kind() const override { return "Embedding"; }

 private:
  Parameter& weight_;
};

}  // namespace tutti

#pragma once

#include "models/zoo/classifier.h"

namespace tutti {

struct MlpOptions {
  int64_t in_features = 0;
  std::vector<int64_t> hidden;
  int64_t num_classes = 0;
  std::string activation = "relu";
};

// Linear layers with an activation between them, over inputs flattened from dimension 1. Parameters are named
// as in an nn.Sequential of the same layers: "0.weight", "2.weight", ...
class Mlp final : public Classifier {
 public:
  explicit Mlp(const MlpOptions& options);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "Mlp"; }
};

}  // namespace tutti

#pragma once

#include <c10/core/ScalarType.h>

#include "models/model.h"
#include "models/zoo/options.h"
#include "tensors/tree.h"

namespace tutti {

// Linear layers with activations in between, over inputs flattened from dimension 1. Parameters are named as
// in an nn.Sequential of the same layers: "0.weight", "2.weight", ...
class Mlp final : public Classifier {
 public:
  explicit Mlp(const MlpOptions& options);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "Mlp"; }
};

// A classifier of consecutive layers, each given as PyTorch text (models/zoo/layer_text.h). Parameters are
// named as in an nn.Sequential of the same layers: "0.weight", "3.bias", ...
class SequentialNet final : public Classifier {
 public:
  // Throws UserError.
  explicit SequentialNet(const std::vector<std::string>& layers);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "SequentialNet"; }

  // Output shape for a sample of the given shape, found by a forward pass on a separate net. Throws
  // UserError that names the layer which rejects its input.
  static Shape output_shape(const std::vector<std::string>& layers, const Shape& sample,
                            at::ScalarType dtype = at::kFloat);
};

}  // namespace tutti

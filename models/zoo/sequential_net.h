#pragma once

#include "models/zoo/classifier.h"
#include "tensors/tree.h"

namespace tutti {

// A classifier of layers one after another, each described as PyTorch prints it (models/zoo/layer_text.h).
// Parameters are named as in an nn.Sequential of the same layers: "0.weight", "3.bias", ...
class SequentialNet final : public Classifier {
 public:
  // Throws UserError.
  explicit SequentialNet(const std::vector<std::string>& layers);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "SequentialNet"; }

  // What a sample of this shape comes to, which is tried on a net of its own. Throws UserError that names the
  // layer which does not take what comes to it.
  static Shape scores_of(const std::vector<std::string>& layers, const Shape& sample);
};

}  // namespace tutti

#pragma once

#include "models/model.h"
#include "models/zoo/options.h"

namespace tutti {

// ResNet for small images of He et al. 2015, section 4.2, with projection shortcuts: a 3x3 convolution,
// three stages of n basic blocks with width, 2 width and 4 width channels, mean pooling, a linear layer.
// Parameters are named as in torchvision's ResNet.
class ResNetCifar final : public Classifier {
 public:
  explicit ResNetCifar(const ResNetCifarOptions& options);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "ResNetCifar"; }

 private:
  Slot& conv1_;
  Slot& bn1_;
  Slot& relu_;
  std::vector<Slot*> stages_;
  Slot* avgpool_;
  Slot* fc_;
};

}  // namespace tutti

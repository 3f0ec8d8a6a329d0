#pragma once

#include "models/model.h"
#include "models/zoo/options.h"

namespace tutti {

// ResNet of He et al. 2015, table 1, as in torchvision: a strided 7x7 convolution and a max pooling, four
// stages of BasicBlocks (18 and 34 layers) or Bottlenecks (50, 101 and 152, strided at the 3x3 convolution),
// mean pooling, a linear layer. Parameters have torchvision's names and initial values. Input: images [N,
// in_channels, H, W]. For small images the stem is a 3x3 convolution without stride and pooling (Chen et al.
// 2020, arXiv:2002.05709, appendix B.9).
class ResNet final : public Classifier {
 public:
  explicit ResNet(const ResNetOptions& options);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "ResNet"; }

 private:
  Slot& conv1_;
  Slot& bn1_;
  Slot& relu_;
  Slot& maxpool_;
  std::vector<Slot*> stages_;
  Slot* avgpool_;
  Slot* fc_;
};

}  // namespace tutti

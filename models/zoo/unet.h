#pragma once

#include "models/model.h"
#include "models/zoo/options.h"

namespace tutti {

// U-Net of Ronneberger et al. 2015, arXiv:1505.04597, as segmentation_models_pytorch's Unet over one of
// torchvision's ResNets, whose features the decoder enlarges and joins: scores [N, classes, H, W] of the
// pixels of images [N, in_channels, H, W]. Parameters have segmentation_models_pytorch's names and initial
// values.
class Unet final : public Classifier {
 public:
  explicit Unet(const UnetOptions& options);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "Unet"; }

 private:
  Slot& encoder_;
  Slot& decoder_;
  Slot& head_;
};

}  // namespace tutti

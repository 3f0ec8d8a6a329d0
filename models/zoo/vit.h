#pragma once

#include "models/model.h"
#include "models/zoo/options.h"

namespace tutti {

// Vision transformer of Dosovitskiy et al. 2020, arXiv:2010.11929, as torchvision's VisionTransformer: square
// patches of an image as tokens behind a class token, learned positions, pre-norm blocks; the class token
// goes through a linear layer. Parameters have torchvision's names and initial values. Input: images [N,
// in_channels, image_size, image_size].
class Vit final : public Classifier {
 public:
  explicit Vit(const VitOptions& options);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "VisionTransformer"; }
  // 6 per parameter and token, and 12 num_layers hidden_dim T for attention.
  double flops_per_batch(const Batch& batch) const override;

 private:
  VitOptions options_;
  Parameter& class_token_;
  Slot& conv_proj_;
  Slot& encoder_;
  Slot& heads_;
  double parameters_ = 0;
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <vector>

#include "models/layers/layer.h"

namespace tutti {

// The layers of segmentation_models_pytorch's Unet, with its names and initial values.

struct UnetEncoderOptions {
  int64_t resnet = 34;  // layers: see has_resnet_depth
  int64_t width = 64;   // channels of the stem
  int64_t in_channels = 3;
  int64_t depth = 5;  // halvings of the image, 2 to 5

  // Channels of the features 0 to depth.
  std::vector<int64_t> channels() const;
};

// A ResNet without its head: images [N, C, H, W] to a list of features, of which "0" is the images and each
// next element has half the height and width, rounded up. Stages past `depth` have tensors, as in
// segmentation_models_pytorch, but are neither called nor trained.
class UnetEncoder final : public Layer {
 public:
  explicit UnetEncoder(const UnetEncoderOptions& options);
  TensorTree forward(const TensorTree& images) override;
  const char* kind() const override { return "ResNetEncoder"; }

 private:
  Slot& conv1_;
  Slot& bn1_;
  Slot& relu_;
  Slot& maxpool_;
  std::vector<Slot*> stages_;  // that are called
};

// Takes "x" and "skip", of about twice the height and width. Enlarges x to the size of skip by repeating
// pixels, appends the channels of skip if there are `skip_channels`, and convolves twice.
class UnetDecoderBlock final : public Layer {
 public:
  UnetDecoderBlock(int64_t in_channels, int64_t skip_channels, int64_t out_channels);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "UnetDecoderBlock"; }

 private:
  bool appends_skip_;
  Slot& conv1_;
  Slot& conv2_;
};

// The features of an encoder to [N, channels.back(), H, W]. A block for each number of `channels`, from the
// smallest features up; the last one reads of the images their size alone.
class UnetDecoder final : public Layer {
 public:
  UnetDecoder(const std::vector<int64_t>& features, const std::vector<int64_t>& channels);
  TensorTree forward(const TensorTree& features) override { return blocks_(features); }
  const char* kind() const override { return "UnetDecoder"; }

 private:
  Slot& blocks_;
};

// Slot "0": a 3x3 convolution to the scores of each pixel.
std::shared_ptr<Layer> segmentation_head(int64_t in_channels, int64_t classes);

}  // namespace tutti

#pragma once

#include <cstdint>
#include <vector>

#include "models/layers/diffusion/resnet.h"
#include "models/layers/layer.h"

namespace tutti {

// Halves [N, C, H, W] by a convolution: diffusers' Downsample2D. Without padding a row and a column of zeros
// are added at the end.
class Downsample2D final : public Layer {
 public:
  Downsample2D(int64_t channels, int64_t padding);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Downsample2D"; }

 private:
  bool pads_;
  Slot& conv_;
};

// Doubles [N, C, H, W], each pixel four times, then a convolution: diffusers' Upsample2D.
class Upsample2D final : public Layer {
 public:
  explicit Upsample2D(int64_t channels);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Upsample2D"; }

 private:
  Slot& conv_;
};

// The size of a block of a UNet.
struct UnetBlockSize {
  int64_t in = 0;       // channels
  int64_t out = 0;      // likewise
  int64_t skipped = 0;  // of an up block: channels of the last state from below
  int64_t layers = 1;
  bool attends = false;   // each residual block has attention behind it
  bool resamples = true;  // halves or doubles the size in the end
};

// diffusers' DownBlock2D and AttnDownBlock2D over TimedStates. Returns the states behind each layer, as a
// list; the last states continue, and all states are for the up block of the same size.
class DownBlock2D final : public Layer {
 public:
  DownBlock2D(const UnetBlockSize& size, const UnetBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return attentions_.empty() ? "DownBlock2D" : "AttnDownBlock2D"; }

 private:
  std::vector<Slot*> resnets_, attentions_;
  Slot* downsampler_ = nullptr;
};

// diffusers' UNetMidBlock2D over TimedStates: a residual block, attention, and one more. Returns [N, C, H,
// W].
class UnetMidBlock2D final : public Layer {
 public:
  UnetMidBlock2D(int64_t channels, bool attends, const UnetBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "UNetMidBlock2D"; }

 private:
  Slot& first_;
  Slot* attention_;
  Slot& second_;
};

// diffusers' UpBlock2D and AttnUpBlock2D over TimedStates with "skips", a list of as many states as there are
// layers, which join the channels, the last one first. Returns [N, out, H, W].
class UpBlock2D final : public Layer {
 public:
  UpBlock2D(const UnetBlockSize& size, const UnetBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return attentions_.empty() ? "UpBlock2D" : "AttnUpBlock2D"; }
  std::size_t skips() const { return resnets_.size(); }

 private:
  std::vector<Slot*> resnets_, attentions_;
  Slot* upsampler_ = nullptr;
};

}  // namespace tutti

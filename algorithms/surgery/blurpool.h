#pragma once

#include <memory>

#include "algorithms/surgery/options.h"
#include "models/layers/conv.h"
#include "models/layers/pool.h"
#include "training/engine/algorithm.h"

namespace tutti {

// Blurs each channel of [N, C, H, W] with zeros around the image, and keeps every `stride`-th pixel. `filter`
// [1 or C, 1, height, width] of odd height and width; default: [1 2 1; 2 4 2; 1 2 1] / 16. An image that is
// smaller than the filter is returned unchanged. Zhang 2019, arXiv:1904.11486; composer's blur_2d.
at::Tensor blur_2d(const at::Tensor& input, Extent2d stride = 1, const at::Tensor& filter = {});

// The maxima of all windows (stride 1), blurred with the stride of the options; composer's blurmax_pool2d.
at::Tensor blurmax_pool2d(const at::Tensor& input, const MaxPool2dOptions& options = {},
                          const at::Tensor& filter = {});

// A MaxPool2d that blurs before dropping pixels: blurmax_pool2d. composer's BlurMaxPool2d.
class BlurMaxPool2d final : public Layer {
 public:
  explicit BlurMaxPool2d(const MaxPool2dOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "BlurMaxPool2d"; }

 private:
  MaxPool2dOptions options_;
  Buffer& filt2d_;
};

// A strided Conv2d that blurs its input; or, without `blur_first`, convolves with stride 1, then blurs with
// the stride: slower, and as in the paper. Keeps the convolution, or its parameters, in the slot "conv".
// composer's BlurConv2d.
class BlurConv2d final : public Layer {
 public:
  explicit BlurConv2d(std::shared_ptr<Conv2d> conv, bool blur_first = true);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "BlurConv2d"; }

 private:
  bool blur_first_;
  Extent2d blur_stride_;
  Slot& conv_;
  Buffer& blur_filter_;
};

// Replaces strided convolutions and max pools by their blurring versions, except blurring layers. Returns the
// number of replaced layers. Call materialise afterwards. composer.functional.apply_blurpool.
int apply_blurpool(Layer& model, const BlurPoolOptions& options = {});

// apply_blurpool at INIT. composer.algorithms.BlurPool.
class BlurPool final : public Algorithm {
 public:
  explicit BlurPool(const BlurPoolOptions& options = {}) : options_(options) {}
  std::string name() const override { return "BlurPool"; }
  Needs needs() const override { return {.required_on_load = true}; }
  // The model may no longer run: a MaxPool2d with ceil_mode made larger outputs.
  bool try_on(const State&, Batch&) const override { return true; }
  Event tried_at() const override { return Event::kInit; }
  bool match(Event event, const State&) const override { return event == Event::kInit; }
  void apply(Event event, State& state, Logger& logger) override;

 private:
  BlurPoolOptions options_;
};

}  // namespace tutti

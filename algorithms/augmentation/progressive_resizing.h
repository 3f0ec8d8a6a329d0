#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>

#include "algorithms/augmentation/options.h"
#include "tensors/draws.h"
#include "training/engine/algorithm.h"

namespace tutti {

// Images [N, C, H, W] at height int(scale_factor * H) and width int(scale_factor * W), and their targets.
// With `resize_targets` targets [N, H', W'] or [N, C', H', W'] are resized alike, or cropped at the same
// place. If scale_factor >= 1, images and targets are returned unchanged. composer.functional.resize_batch.
std::pair<at::Tensor, at::Tensor> resize_batch(const at::Tensor& input, const at::Tensor& target,
                                               double scale_factor, ResizeMode mode, bool resize_targets,
                                               Draws& draws);

// Trains on small images first. The scale is `initial_scale` up to `delay_fraction` of the training, and then
// grows evenly up to 1, where the last `finetune_fraction` begins; each width is a multiple of
// `size_increment`. Logs "progressive_resizing/height", "/width" and "/scale_factor".
// composer.algorithms.ProgressiveResizing.
class ProgressiveResizing final : public Algorithm {
 public:
  using Options = ProgressiveResizingOptions;

  explicit ProgressiveResizing(Options options) : options_(std::move(options)) {}

  std::string name() const override { return "ProgressiveResizing"; }
  bool try_on(const State& state, Batch& sample) const override;
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

 private:
  double scale_at(double elapsed) const;
  void resize(Batch& batch, double scale, Draws& draws) const;

  Options options_;
};

}  // namespace tutti

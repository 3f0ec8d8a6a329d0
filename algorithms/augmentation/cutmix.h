#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "algorithms/augmentation/sample_mixing.h"
#include "data/transforms/box.h"
#include "tensors/draws.h"

namespace tutti {

// A batch in which each image has a box of another image. Its loss is adjusted_lambda * loss(target) + (1 -
// adjusted_lambda) * loss(target_perm).
struct CutMixed {
  at::Tensor input;              // [N, C, H, W]
  at::Tensor target_perm;        // [N, ...], targets of the images that gave the boxes
  double adjusted_lambda = 1.0;  // share of an image outside the box
  Box bbox;
};

// Copies the box of input[indices] into input [N, C, H, W], in a new tensor. `indices`: [N], int64. Yun et
// al. 2019, arXiv:1905.04899; composer.functional.cutmix_batch.
CutMixed cutmix_batch(const at::Tensor& input, const at::Tensor& target, const Box& bbox,
                      const at::Tensor& indices);
// Draws indices and box.
CutMixed cutmix_batch(const at::Tensor& input, const at::Tensor& target, Draws& draws,
                      const CutMixOptions& options = {});

// Mixes the samples of each microbatch; the box is drawn once a batch. Targets with the height and width of
// the images (masks) get the box too. composer.algorithms.CutMix.
class CutMix final : public SampleMixing {
 public:
  explicit CutMix(CutMixOptions how = {}, SampleMixingOptions options = {})
      : SampleMixing(std::move(options)), how_(how) {}

  std::string name() const override { return "CutMix"; }
  bool try_on(const State& state, Batch& sample) const override;

 private:
  Mixed mix(const State& state, const at::Tensor& input, const at::Tensor& partners) override;
  at::Tensor mix_targets(const State& state, const at::Tensor& target,
                         const at::Tensor& partner_target) const override;

  CutMixOptions how_;
  Box bbox_;  // of the batch
};

}  // namespace tutti

#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "algorithms/augmentation/sample_mixing.h"
#include "tensors/draws.h"

namespace tutti {

// A mixed batch. Its loss is (1 - mixing) * loss(target) + mixing * loss(target_perm).
struct MixedUp {
  at::Tensor input;        // [N, ...], float
  at::Tensor target_perm;  // [N, ...], targets of the partners
  double mixing = 0.0;     // weight of the partners
};

// (1 - mixing) * input + mixing * input[indices], in a new tensor; integers become float32. `indices`: [N],
// int64. Zhang et al. 2017, arXiv:1710.09412; composer.functional.mixup_batch.
MixedUp mixup_batch(const at::Tensor& input, const at::Tensor& target, double mixing,
                    const at::Tensor& indices);
// Draws mixing and indices.
MixedUp mixup_batch(const at::Tensor& input, const at::Tensor& target, Draws& draws, double alpha = 0.2);

// min(z, 1 - z) for z from Beta(alpha, alpha); 0 for alpha = 0.
double draw_mixing(double alpha, Draws& draws);

// Mixes the samples of each microbatch; `mixing` is drawn once a batch. composer.algorithms.MixUp.
class MixUp final : public SampleMixing {
 public:
  explicit MixUp(double alpha = 0.2, SampleMixingOptions options = {})
      : SampleMixing(std::move(options)), alpha_(alpha) {}

  std::string name() const override { return "MixUp"; }

 private:
  Mixed mix(const State& state, const at::Tensor& input, const at::Tensor& partners) override;

  double alpha_;
};

}  // namespace tutti

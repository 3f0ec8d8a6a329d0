#include "algorithms/augmentation/mixup.h"

#include <algorithm>

#include "training/state.h"

namespace tutti {
namespace {

// The gathered samples are a new tensor, which becomes the result.
at::Tensor mixed_inputs(const at::Tensor& input, double mixing, const at::Tensor& indices) {
  if (!input.is_floating_point()) return mixed_inputs(input.to(at::kFloat), mixing, indices);
  return input.index_select(0, indices).lerp_(input, 1.0 - mixing);
}

}  // namespace

MixedUp mixup_batch(const at::Tensor& input, const at::Tensor& target, double mixing,
                    const at::Tensor& indices) {
  return {mixed_inputs(input, mixing, indices), target.index_select(0, indices), mixing};
}

MixedUp mixup_batch(const at::Tensor& input, const at::Tensor& target, Draws& draws, double alpha) {
  const double mixing = draw_mixing(alpha, draws);
  return mixup_batch(input, target, mixing, copy_to_device(draws.permutation(input.size(0)), input.device()));
}

double draw_mixing(double alpha, Draws& draws) {
  const double mixing = alpha > 0.0 ? draws.beta(alpha, alpha) : 0.0;
  return std::min(mixing, 1.0 - mixing);
}

SampleMixing::Mixed MixUp::mix(const State& state, const at::Tensor& input, const at::Tensor& partners) {
  const double mixing = draw_mixing(alpha_, *state.draws("MixUp"));
  return {mixed_inputs(input, mixing, partners), mixing};
}

AlgorithmPtr MixUpOptions::make(const Setting&) const { return std::make_shared<MixUp>(alpha, *this); }

}  // namespace tutti

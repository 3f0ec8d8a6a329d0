#include "algorithms/loop/label_smoothing.h"

#include <ATen/ops/full.h>

#include "algorithms/augmentation/fit.h"
#include "models/loss.h"
#include "models/losses.h"
#include "models/model.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "training/state.h"

namespace tutti {
namespace {

// The keys of the original targets, and of the smoothed ones, during the loss. They stay in the batch,
// because an algorithm must not hold memory of an aborted attempt.
constexpr const char* kOriginal = "LabelSmoothing";
constexpr const char* kSmoothed = "LabelSmoothing/smoothed";

Batch without_own(const Batch& batch) {
  Batch::Children kept = batch.children();
  std::erase_if(kept, [](const auto& child) { return child.first == kOriginal || child.first == kSmoothed; });
  return kept;
}

// A mean over class indices is over their classes' weights, that over probabilities over their number. As in
// PyTorch's cross_entropy, smoothing does not change what the mean is over. `smoothed`: the loss's weight.
void mean_over_batch(State& state, const at::Tensor& target, double smoothed) {
  state.loss_weight = state.model->loss_weight(state.batch);
  if (!target.is_floating_point() && state.loss_weight > 0 && state.loss_weight != smoothed)
    state.loss = state.loss * (smoothed / state.loss_weight);
}

}  // namespace

at::Tensor smooth_labels(const at::Tensor& logits, const at::Tensor& target, double smoothing) {
  const double rest = smoothing / static_cast<double>(logits.size(1)), full = 1.0 - smoothing;
  if (logits.size(1) == 1)
    throw UserError("labels of a model with one score have no other class to share with");
  if (!holds_indices(logits, target)) {
    const at::Tensor dense = target.to(at::kFloat);
    const at::Tensor parts = target_masses(dense).clamp_max_(1.0).to(at::kFloat);
    return dense.mul(full).add_(parts.mul_(rest).unsqueeze(1));
  }
  const at::Tensor none = target.lt(0), indices = target.to(at::kLong).clamp_min(0);
  const auto numbers = at::TensorOptions(logits.device()).dtype(at::kFloat);
  const at::Tensor values = at::full(target.sizes(), full + rest, numbers).masked_fill_(none, rest);
  return at::full(logits.sizes(), rest, numbers)
      .scatter_(1, indices.unsqueeze(1), values.unsqueeze(1))
      .masked_fill_(target.eq(kIgnoredTarget).unsqueeze(1), 0.0);
}

bool LabelSmoothing::try_on(const State& state, Batch& sample) const {
  target_key_.get(sample);
  require_dense_targets(state);
  return false;
}

bool LabelSmoothing::match(Event event, const State&) const {
  return event == Event::kBeforeLoss || event == Event::kAfterLoss;
}

void LabelSmoothing::apply(Event event, State& state, Logger&) {
  Batch& batch = state.batch;
  if (event == Event::kBeforeLoss) {
    const at::Tensor target = target_key_.get(batch);
    const at::Tensor smooth = smooth_labels(state.outputs.tensor(), target, smoothing_);
    batch.set(kOriginal, target);
    batch.set(kSmoothed, smooth);
    target_key_.set(batch, smooth);
  } else {
    const double known = state.loss_weight, smoothed = known > 0 ? known : state.model->loss_weight(batch);
    const at::Tensor original = batch[kOriginal];
    const bool are_mixed = !target_key_.get(batch).is_same(batch[kSmoothed]);  // by MixUp or CutMix
    target_key_.set(batch, original);
    batch = without_own(batch);
    if (are_mixed) {
      TUTTI_PROBE("label smoothing: targets are mixed, too");
      state.loss_weight = smoothed;  // of probabilities, wherever smoothing stands
    } else if (!state.composer) {
      mean_over_batch(state, original, smoothed);
    }
  }
}

AlgorithmPtr LabelSmoothingOptions::make(const Setting&) const {
  return std::make_shared<LabelSmoothing>(smoothing, target_key);
}

}  // namespace tutti

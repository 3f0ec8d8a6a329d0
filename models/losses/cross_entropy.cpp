#include "models/losses/cross_entropy.h"

#include <ATen/ATen.h>

#include "models/losses/target.h"
#include "runtime/error.h"

namespace tutti {
namespace {

at::Tensor dense_cross_entropy(const at::Tensor& scores, const at::Tensor& target,
                               const SoftCrossEntropyOptions& options) {
  at::Tensor parts = -(target * at::log_softmax(scores, 1));
  if (options.weight.defined()) parts = (parts.movedim(1, -1) * options.weight).movedim(-1, 1);
  const at::Tensor losses = parts.sum(1);
  const at::Tensor loss = reduced(losses, options.reduction);
  if (options.reduction != LossReduction::kMean) return loss;
  const auto mass = target.sum().item<double>();
  if (mass <= 0.0) throw UserError("no target has a probability above zero");
  return loss * (static_cast<double>(losses.numel()) / mass);
}

}  // namespace

at::Tensor soft_cross_entropy(const at::Tensor& scores, const at::Tensor& target,
                              const SoftCrossEntropyOptions& options) {
  if (!holds_indices(scores, target)) return dense_cross_entropy(scores, target, options);
  return at::cross_entropy_loss(scores, target, options.weight, static_cast<int64_t>(options.reduction),
                                options.ignore_index);
}

at::Tensor binary_cross_entropy_with_logits(const at::Tensor& scores, const at::Tensor& target,
                                            const BinaryCrossEntropyOptions& options) {
  const at::Tensor loss =
      at::binary_cross_entropy_with_logits(scores, dense_target(scores, target), options.weight,
                                           options.pos_weight, static_cast<int64_t>(options.reduction));
  return options.scale_by_batch_size ? loss / scores.size(0) : loss;
}

}  // namespace tutti

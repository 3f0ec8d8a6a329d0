#pragma once

#include <ATen/core/Tensor.h>

#include "tensors/ignored_target.h"

namespace tutti {

// The reduction of the losses of single items. Values are libtorch's at::Reduction.
enum class LossReduction : int64_t { kNone, kMean, kSum };

at::Tensor reduced(const at::Tensor& losses, LossReduction reduction);

// True if the target [N, ...] of scores [N, C, ...] holds class indices; false if it has the scores' shape.
// Throws UserError for any other shape.
bool holds_indices(const at::Tensor& scores, const at::Tensor& target);

// A float32 value per class: one-hot for indices (a negative index gives zeros), else the target itself.
// Throws UserError for an index beyond the classes.
at::Tensor dense_target(const at::Tensor& scores, const at::Tensor& target);

// torch's cross_entropy of scores [N, C, ...] against class indices [N, ...]. Throws UserError with the first
// index that is neither a class nor `ignore_index`.
at::Tensor index_cross_entropy(const at::Tensor& scores, const at::Tensor& target,
                               LossReduction reduction = LossReduction::kMean, const at::Tensor& weight = {},
                               int64_t ignore_index = kIgnoredTarget);

// The sums over classes [N, ...] of probabilities [N, C, ...]: 1, exactly, where they are but for rounding.
at::Tensor target_masses(const at::Tensor& target);

// The divisor of the mean in soft_cross_entropy: the number of indices other than kIgnoredTarget, or the sum
// of all probabilities [N, C, ...] by target_masses.
double counted_targets(const at::Tensor& target);

struct SoftCrossEntropyOptions {
  at::Tensor weight;  // [C], factor of each class; undefined = 1
  int64_t ignore_index = kIgnoredTarget;
  LossReduction reduction = LossReduction::kMean;
};

// Cross entropy in nats of scores [N, C, ...] against class indices [N, ...] or probabilities [N, C, ...]:
// composer.loss.soft_cross_entropy. With indices this is torch's, a mean over the weights of counted
// targets. With probabilities the mean is over the sum of all probabilities; an item with a sum below one
// counts less. Throws UserError if that sum is zero; on a device, where the host would wait for it, the loss
// is then not finite.
at::Tensor soft_cross_entropy(const at::Tensor& scores, const at::Tensor& target,
                              const SoftCrossEntropyOptions& options = {});

struct BinaryCrossEntropyOptions {
  at::Tensor weight;      // factor of each element, broadcast to the scores; undefined = 1
  at::Tensor pos_weight;  // factor of the positive part of each element; undefined = 1
  LossReduction reduction = LossReduction::kSum;
  bool scale_by_batch_size = true;  // divide by N
};

// Binary cross entropy of each score [N, C, ...]; targets as for soft_cross_entropy, a negative index
// belongs to no class. composer.loss.binary_cross_entropy_with_logits.
at::Tensor binary_cross_entropy_with_logits(const at::Tensor& scores, const at::Tensor& target,
                                            const BinaryCrossEntropyOptions& options = {});

struct DiceLossOptions {
  bool sigmoid = false;  // apply sigmoid to the scores first
  bool softmax = false;  // apply softmax over the classes first; excludes sigmoid
  bool squared_pred = false;
  bool jaccard = false;                // intersection over union instead of Dice
  bool batch = false;                  // sum areas over the samples too
  bool ignore_absent_classes = false;  // skip classes without a target
  LossReduction reduction = LossReduction::kMean;
};

// 1 - Dice coefficient of predictions [N, C, ...] and targets (class indices [N, ...] or [N, C, ...]) per
// sample and class, [N, C], or [C] with `batch`: composer.loss.DiceLoss, after MONAI (Milletari et al.,
// 2016). Items with a negative index do not count as predicted.
at::Tensor dice_loss(const at::Tensor& scores, const at::Tensor& target, const DiceLossOptions& options = {});

}  // namespace tutti

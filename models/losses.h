#pragma once

#include <ATen/core/Tensor.h>

#include "models/loss_options.h"
#include "tensors/ignored_target.h"

namespace tutti {

at::Tensor reduced(const at::Tensor& losses, LossReduction reduction);

// Class indices of bytes as int64, which losses and metrics take; other targets unchanged.
at::Tensor wide_indices(const at::Tensor& target);

// True if the target [N, ...] of scores [N, C, ...] holds class indices; false for a target of the scores'
// shape. Throws UserError for any other shape.
bool holds_indices(const at::Tensor& scores, const at::Tensor& target);

// The target as values of the outputs' shape: [N, ...] stands for [N, 1, ...]. Integers become float32.
// Throws UserError for other shapes, which torch would broadcast, and for integers below 0.
at::Tensor value_target(const at::Tensor& outputs, const at::Tensor& target);

// A float32 value per class: one-hot for indices (a negative index gives zeros), else the given target. With
// a single score [N, 1, ...] a target [N, ...] is the value of its class. Throws UserError for an index
// beyond the classes; on a device, where the host would wait for the check, the device reports the error.
at::Tensor dense_target(const at::Tensor& scores, const at::Tensor& target);

// torch's cross_entropy of scores [N, C, ...] against class indices [N, ...]. Throws UserError with the first
// index that is neither a class nor `ignore_index`.
at::Tensor index_cross_entropy(const at::Tensor& scores, const at::Tensor& target,
                               LossReduction reduction = LossReduction::kMean, const at::Tensor& weight = {},
                               int64_t ignore_index = kIgnoredTarget);

// Throws UserError with the first index that is neither in [0, classes) nor `ignore_index`.
void require_known(const at::Tensor& target, int64_t classes, int64_t ignore_index);

// The sums over classes [N, ...] of probabilities [N, C, ...]: exactly 1 where the sum is 1 but for rounding.
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
// composer.loss.soft_cross_entropy. With indices torch's mean over the weights of counted targets. With
// probabilities the mean is over the sum of all probabilities; an item with a sum below 1 counts less. Throws
// UserError if that sum is zero; on a device, where the host would wait for the check, the loss is then not
// finite.
at::Tensor soft_cross_entropy(const at::Tensor& scores, const at::Tensor& target,
                              const SoftCrossEntropyOptions& options = {});

struct BinaryCrossEntropyOptions {
  at::Tensor weight;      // factor of each element, broadcast to the scores; undefined = 1
  at::Tensor pos_weight;  // factor of the positive part of each element; undefined = 1
  LossReduction reduction = LossReduction::kSum;
  bool scale_by_batch_size = true;  // divide by N
};

// Binary cross entropy of each score [N, C, ...]; targets as for soft_cross_entropy, a negative index
// belongs to no class. Throws UserError for labels outside of [0, 1]; a device's are not looked at, as in the
// losses below. composer.loss.binary_cross_entropy_with_logits.
at::Tensor binary_cross_entropy_with_logits(const at::Tensor& scores, const at::Tensor& target,
                                            const BinaryCrossEntropyOptions& options = {});

// 1 - Dice coefficient of predictions [N, C, ...] and targets (class indices [N, ...] or [N, C, ...]) per
// sample and class, [N, C], or [C] with `batch`: composer.loss.DiceLoss, after MONAI (Milletari et al.,
// 2016). Items with a negative index do not count as predicted.
at::Tensor dice_loss(const at::Tensor& scores, const at::Tensor& target, const DiceLossOptions& options = {});

// Binary cross entropy of each score [N, C, ...], weighted by (1 - p)^gamma, where p is the probability given
// to the truth; targets as for binary_cross_entropy_with_logits. torchvision.ops.sigmoid_focal_loss, after
// Lin et al., 2017, equation 5.
at::Tensor sigmoid_focal_loss(const at::Tensor& scores, const at::Tensor& target,
                              const FocalLossOptions& options = {});

}  // namespace tutti

#pragma once

#include <ATen/core/Tensor.h>

namespace tutti {

// What becomes of the losses of single items: they stay apart, or their mean or sum is the loss. The numbers
// are libtorch's.
enum class LossReduction : int64_t { kNone, kMean, kSum };

at::Tensor reduced(const at::Tensor& losses, LossReduction reduction);

// Whether the target of scores [N, C, ...] holds a class index for each item, [N, ...], and not a number for
// each class, shaped as the scores. Throws UserError for any other shape.
bool holds_indices(const at::Tensor& scores, const at::Tensor& target);

// float32 numbers for each class: indices become ones and zeros, a negative index zeros only. Throws
// UserError for an index beyond the classes.
at::Tensor dense_target(const at::Tensor& scores, const at::Tensor& target);

struct SoftCrossEntropyOptions {
  at::Tensor weight;            // [C], a factor for each class; undefined = ones
  int64_t ignore_index = -100;  // targets that do not count; of indices only
  LossReduction reduction = LossReduction::kMean;
};

// Cross entropy in nats of scores [N, C, ...] against class indices [N, ...] or probabilities [N, C, ...]:
// composer.loss.soft_cross_entropy. With indices it is torch's, whose mean is over the weights of the targets
// that count; with probabilities the mean is over the target's whole mass, so that items whose probabilities
// sum to less than one count for less. Throws UserError where that mass is zero.
at::Tensor soft_cross_entropy(const at::Tensor& scores, const at::Tensor& target,
                              const SoftCrossEntropyOptions& options = {});

struct BinaryCrossEntropyOptions {
  at::Tensor weight;      // a factor for each element, broadcast to the scores; undefined = ones
  at::Tensor pos_weight;  // a factor for the positive part of each element; undefined = ones
  LossReduction reduction = LossReduction::kSum;
  bool scale_by_batch_size = true;  // divide by N
};

// Binary cross entropy of each score [N, C, ...] by itself; targets as for soft_cross_entropy, a negative
// index is of no class: composer.loss.binary_cross_entropy_with_logits.
at::Tensor binary_cross_entropy_with_logits(const at::Tensor& scores, const at::Tensor& target,
                                            const BinaryCrossEntropyOptions& options = {});

struct DiceLossOptions {
  bool sigmoid = false;  // of the scores first
  bool softmax = false;  // over the classes first; not both
  bool squared_pred = false;
  bool jaccard = false;                // intersection over union in place of Dice's coefficient
  bool batch = false;                  // areas are summed over the samples too
  bool ignore_absent_classes = false;  // classes without a target do not count
  LossReduction reduction = LossReduction::kMean;
};

// One minus Dice's coefficient of predictions [N, C, ...] and targets (class indices [N, ...] or [N, C, ...])
// for each sample and class, [N, C], with `batch` [C]: composer.loss.DiceLoss, after MONAI's (Milletari et
// al., 2016). Items without any class (a negative index) do not count as predicted.
at::Tensor dice_loss(const at::Tensor& scores, const at::Tensor& target, const DiceLossOptions& options = {});

}  // namespace tutti

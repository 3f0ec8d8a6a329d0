#pragma once

#include <ATen/core/Tensor.h>

#include "models/losses/reduction.h"

namespace tutti {

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

}  // namespace tutti

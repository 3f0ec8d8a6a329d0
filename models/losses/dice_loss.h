#pragma once

#include <ATen/core/Tensor.h>

#include "models/losses/reduction.h"

namespace tutti {

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

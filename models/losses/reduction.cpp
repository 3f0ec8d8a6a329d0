#include "models/losses/reduction.h"

#include <ATen/core/Reduction.h>

namespace tutti {

static_assert(static_cast<int64_t>(LossReduction::kNone) == at::Reduction::None);
static_assert(static_cast<int64_t>(LossReduction::kMean) == at::Reduction::Mean);
static_assert(static_cast<int64_t>(LossReduction::kSum) == at::Reduction::Sum);

at::Tensor reduced(const at::Tensor& losses, LossReduction reduction) {
  if (reduction == LossReduction::kNone) return losses;
  return reduction == LossReduction::kMean ? losses.mean() : losses.sum();
}

}  // namespace tutti

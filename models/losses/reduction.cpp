#include "models/losses/reduction.h"

#include <ATen/core/Reduction.h>

namespace tutti {

static_assert(static_cast<int64_t>(Reduction::kNone) == at::Reduction::None);
static_assert(static_cast<int64_t>(Reduction::kMean) == at::Reduction::Mean);
static_assert(static_cast<int64_t>(Reduction::kSum) == at::Reduction::Sum);

at::Tensor reduced(const at::Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::kNone) return losses;
  return reduction == Reduction::kMean ? losses.mean() : losses.sum();
}

}  // namespace tutti

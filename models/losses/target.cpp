#include "models/losses/target.h"

#include <ATen/ATen.h>

#include <sstream>

#include "runtime/error.h"

namespace tutti {
namespace {

at::Tensor one_hot_of(const at::Tensor& indices, int64_t classes) {
  if (at::isFloatingType(indices.scalar_type())) throw UserError("class indices must be integers");
  if (indices.numel() > 0 && indices.max().item<int64_t>() >= classes)
    throw UserError("a class index of " + std::to_string(indices.max().item<int64_t>()) +
                    " where there are scores of " + std::to_string(classes) + " classes");
  std::vector<int64_t> shape = indices.sizes().vec();
  shape.insert(shape.begin() + 1, classes + 1);
  const at::Tensor known = indices.to(at::kLong).masked_fill(indices.lt(0), classes);
  return at::zeros(shape, indices.options().dtype(at::kFloat))
      .scatter_(1, known.unsqueeze(1), 1.0)
      .narrow(1, 0, classes);
}

}  // namespace

bool holds_indices(const at::Tensor& scores, const at::Tensor& target) {
  if (scores.sizes() == target.sizes()) return false;
  if (scores.dim() == target.dim() + 1) return true;
  std::ostringstream message;
  message << "a target of shape " << target.sizes() << " does not go with scores of shape " << scores.sizes();
  throw UserError(message.str());
}

at::Tensor dense_target(const at::Tensor& scores, const at::Tensor& target) {
  return holds_indices(scores, target) ? one_hot_of(target, scores.size(1)) : target.to(at::kFloat);
}

}  // namespace tutti

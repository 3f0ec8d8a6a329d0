#include "models/losses/dice_loss.h"

#include <ATen/ATen.h>

#include "models/losses/target.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr double kEpsilon = 1e-5;

at::Tensor predicted(const at::Tensor& scores, const DiceLossOptions& options) {
  if (options.sigmoid && options.softmax) throw UserError("dice loss: either sigmoid or softmax, not both");
  if (options.sigmoid) return scores.sigmoid();
  return options.softmax && scores.size(1) > 1 ? scores.softmax(1) : scores;
}

std::vector<int64_t> summed_dims(const at::Tensor& scores, bool batch) {
  std::vector<int64_t> dims;
  if (batch) dims.push_back(0);
  for (int64_t dim = 2; dim < scores.dim(); ++dim) dims.push_back(dim);
  return dims;
}

// The losses, [N, C] or [C], of the classes that have an area in the targets.
at::Tensor of_present_classes(const at::Tensor& losses, const at::Tensor& areas) {
  const at::Tensor per_class = areas.dim() == 2 ? areas.sum(0) : areas;
  return losses.index_select(-1, per_class.gt(0).nonzero().flatten());
}

}  // namespace

at::Tensor dice_loss(const at::Tensor& scores, const at::Tensor& target, const DiceLossOptions& options) {
  at::Tensor truth = dense_target(scores, target);
  const at::Tensor known = truth.sum(1, /*keepdim=*/true).ne(0);
  at::Tensor prediction = predicted(scores, options);
  const std::vector<int64_t> dims = summed_dims(scores, options.batch);
  const at::Tensor intersection = (truth * prediction).sum(dims);
  if (options.squared_pred) {
    truth = truth.square();
    prediction = prediction.square();
  }
  const at::Tensor area = truth.sum(dims);
  at::Tensor both = area + (known * prediction).sum(dims);
  if (options.jaccard) both = 2.0 * (both - intersection);
  const at::Tensor losses = 1.0 - (2.0 * intersection + kEpsilon) / (both + kEpsilon);
  return reduced(options.ignore_absent_classes ? of_present_classes(losses, area) : losses,
                 options.reduction);
}

}  // namespace tutti

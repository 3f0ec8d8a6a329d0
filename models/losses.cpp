#include "models/losses.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Reduction.h>

#include <algorithm>
#include <sstream>

#include "runtime/error.h"
#include "tensors/fused/cross_entropy.h"

namespace tutti {
namespace {

at::Tensor one_hot_of(const at::Tensor& indices, int64_t classes) {
  if (at::isFloatingType(indices.scalar_type())) throw UserError("class indices must be integers");
  if (indices.is_cpu() && indices.numel() > 0 && indices.max().item<int64_t>() >= classes)
    throw UserError("class index " + std::to_string(indices.max().item<int64_t>()) +
                    " is too large: there are " + std::to_string(classes) + " classes");
  std::vector<int64_t> shape = indices.sizes().vec();
  shape.insert(shape.begin() + 1, classes + 1);
  const at::Tensor known = indices.to(at::kLong).masked_fill(indices.lt(0), classes);
  return at::zeros(shape, indices.options().dtype(at::kFloat))
      .scatter_(1, known.unsqueeze(1), 1.0)
      .narrow(1, 0, classes);
}

at::Tensor dense_cross_entropy(const at::Tensor& scores, const at::Tensor& target,
                               const SoftCrossEntropyOptions& options) {
  // In 32 bits at least, as index_cross_entropy: autocast leaves log_softmax in 16 bits on CPUs.
  const at::ScalarType dtype = at::toOpMathType(scores.scalar_type());
  at::Tensor parts = -(target * at::log_softmax(scores, 1, dtype));
  if (options.weight.defined()) parts = (parts.movedim(1, -1) * options.weight).movedim(-1, 1);
  const at::Tensor losses = parts.sum(1);
  const at::Tensor loss = reduced(losses, options.reduction);
  if (options.reduction != LossReduction::kMean) return loss;
  const at::Tensor total = target.sum();
  if (!total.is_cpu()) {
    const at::Tensor mass = total.to(at::kDouble);
    const at::Tensor factor = at::full_like(mass, losses.numel()).div(mass);
    return loss.mul(factor.to(at::toOpMathType(loss.scalar_type()))).to(loss.scalar_type());
  }
  const auto mass = total.item<double>();
  if (mass <= 0.0) throw UserError("all target probabilities are zero");
  return loss * (static_cast<double>(losses.numel()) / mass);
}

constexpr double kEpsilon = 1e-5;
constexpr double kRounding = 1e-5;  // of a sum of float32 probabilities

// -100 among values or labels: no loss of these leaves it out. The host waits for no device.
void require_counted(const at::Tensor& target) {
  if (target.is_floating_point() || !target.is_cpu() || target.numel() == 0) return;
  const auto least = target.min().item<int64_t>();
  if (least >= 0) return;
  throw UserError("a target is " + std::to_string(least) +
                  ", and only losses of class indices leave targets out; values below zero need floats");
}

// dense_target of a loss in which each class is a label of its own: 0, 1, or a probability, as torch does not
// check. The host waits for no device.
at::Tensor label_target(const at::Tensor& scores, const at::Tensor& target) {
  at::Tensor labels = dense_target(scores, target);
  if (!labels.is_cpu() || labels.numel() == 0) return labels;
  const auto [least, most] = at::aminmax(labels);
  for (const double label : {least.item<double>(), most.item<double>()}) {
    if (label >= -kRounding && label <= 1.0 + kRounding) continue;
    std::ostringstream message;
    message << "a label is " << label << "; expected 0 or 1, or a number between them";
    throw UserError(message.str());
  }
  return labels;
}

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

// Selects the losses, [N, C] or [C], of the classes that occur in the targets.
at::Tensor present_classes(const at::Tensor& losses, const at::Tensor& areas) {
  const at::Tensor per_class = areas.dim() == 2 ? areas.sum(0) : areas;
  return losses.index_select(-1, per_class.gt(0).nonzero().flatten());
}

}  // namespace

static_assert(static_cast<int64_t>(LossReduction::kNone) == at::Reduction::None);
static_assert(static_cast<int64_t>(LossReduction::kMean) == at::Reduction::Mean);
static_assert(static_cast<int64_t>(LossReduction::kSum) == at::Reduction::Sum);

at::Tensor reduced(const at::Tensor& losses, LossReduction reduction) {
  if (reduction == LossReduction::kNone) return losses;
  return reduction == LossReduction::kMean ? losses.mean() : losses.sum();
}

at::Tensor wide_indices(const at::Tensor& target) {
  const bool are_bytes = target.scalar_type() == at::kByte || target.scalar_type() == at::kBool;
  return are_bytes ? target.to(at::kLong) : target;
}

bool holds_indices(const at::Tensor& scores, const at::Tensor& target) {
  if (scores.sizes() == target.sizes()) return false;
  if (scores.dim() == target.dim() + 1) return true;
  std::ostringstream message;
  message << "a target of shape " << target.sizes() << " does not fit scores of shape " << scores.sizes();
  throw UserError(message.str());
}

at::Tensor value_target(const at::Tensor& outputs, const at::Tensor& target) {
  const bool lacks_one = outputs.dim() == target.dim() + 1 && outputs.size(1) == 1;
  const at::Tensor values = lacks_one ? target.unsqueeze(1) : target;
  require_counted(target);
  if (values.sizes() == outputs.sizes()) return values.is_floating_point() ? values : values.to(at::kFloat);
  std::ostringstream message;
  message << "a target of shape " << target.sizes() << " does not fit outputs of shape " << outputs.sizes();
  throw UserError(message.str());
}

at::Tensor dense_target(const at::Tensor& scores, const at::Tensor& target) {
  if (target.dim() + 1 == scores.dim() && scores.size(1) == 1)
    return value_target(scores, target.is_floating_point() ? target : target.clamp_min(0)).to(at::kFloat);
  if (holds_indices(scores, target)) return one_hot_of(target, scores.size(1));
  require_counted(target);
  return target.to(at::kFloat);
}

// torch's own message names neither the array nor the number of classes.
void require_known(const at::Tensor& target, int64_t classes, int64_t ignore_index) {
  const at::Tensor known = target.ge(0).logical_and(target.lt(classes)).logical_or(target.eq(ignore_index));
  const at::Tensor unknown = target.masked_select(known.logical_not());
  if (unknown.numel() == 0) return;
  throw UserError("a target is " + std::to_string(unknown[0].item<int64_t>()) + ", which is not in [0, " +
                  std::to_string(classes) + "), the model's classes; " +
                  "model.ignore_index is for targets that do not count");
}

at::Tensor index_cross_entropy(const at::Tensor& scores, const at::Tensor& target, LossReduction reduction,
                               const at::Tensor& weight, int64_t ignore_index) try {
  if (!weight.defined() && has_cross_entropy_of_rows(scores, target)) {
    const at::Tensor losses = cross_entropy_of_rows(scores, target, ignore_index);
    if (reduction != LossReduction::kMean) return reduced(losses, reduction);
    return losses.sum() / target.ne(ignore_index).sum();
  }
  return at::cross_entropy_loss(scores, target, weight, static_cast<int64_t>(reduction), ignore_index);
} catch (const c10::IndexError&) {
  require_known(target, scores.size(scores.dim() == 1 ? 0 : 1), ignore_index);
  throw;
}

at::Tensor target_masses(const at::Tensor& target) {
  const at::Tensor masses = target.sum(1, /*keepdim=*/false, at::kDouble);
  return masses.masked_fill(masses.sub(1.0).abs().lt(kRounding), 1.0);
}

double counted_targets(const at::Tensor& target) {
  if (at::isFloatingType(target.scalar_type())) return target_masses(target).sum().item<double>();
  if (!target.is_cpu() || !target.is_contiguous() || target.scalar_type() != at::kLong)
    return target.ne(kIgnoredTarget).sum().item<double>();
  const auto* indices =
      target.const_data_ptr<int64_t>();  // without tensor operations, since each step does it
  return static_cast<double>(target.numel() - std::count(indices, indices + target.numel(), kIgnoredTarget));
}

at::Tensor soft_cross_entropy(const at::Tensor& scores, const at::Tensor& target,
                              const SoftCrossEntropyOptions& options) {
  if (!holds_indices(scores, target)) return dense_cross_entropy(scores, target, options);
  return index_cross_entropy(scores, target, options.reduction, options.weight, options.ignore_index);
}

at::Tensor binary_cross_entropy_with_logits(const at::Tensor& scores, const at::Tensor& target,
                                            const BinaryCrossEntropyOptions& options) {
  const at::Tensor loss =
      at::binary_cross_entropy_with_logits(scores, label_target(scores, target), options.weight,
                                           options.pos_weight, static_cast<int64_t>(options.reduction));
  return options.scale_by_batch_size ? loss / scores.size(0) : loss;
}

at::Tensor dice_loss(const at::Tensor& scores, const at::Tensor& target, const DiceLossOptions& options) {
  at::Tensor truth = label_target(scores, target);
  const bool may_be_ignored = target.dim() < scores.dim() && !target.is_floating_point();
  at::Tensor prediction = predicted(scores, options);
  const std::vector<int64_t> dims = summed_dims(scores, options.batch);
  const at::Tensor intersection = (truth * prediction).sum(dims);
  if (options.squared_pred) {
    truth = truth.square();
    prediction = prediction.square();
  }
  const at::Tensor area = truth.sum(dims);
  if (may_be_ignored) prediction = prediction * target.ge(0).unsqueeze(1);
  at::Tensor both = area + prediction.sum(dims);
  if (options.jaccard) both = 2.0 * (both - intersection);
  const at::Tensor losses = 1.0 - (2.0 * intersection + kEpsilon) / (both + kEpsilon);
  return reduced(options.ignore_absent_classes ? present_classes(losses, area) : losses, options.reduction);
}

at::Tensor sigmoid_focal_loss(const at::Tensor& scores, const at::Tensor& target,
                              const FocalLossOptions& options) {
  const at::Tensor truth = label_target(scores, target);
  const at::Tensor wide = scores.to(at::toOpMathType(scores.scalar_type()));
  const at::Tensor probability = wide.sigmoid();
  const at::Tensor error = probability + truth - 2.0 * probability * truth;  // 1 - p of the truth
  at::Tensor losses = at::binary_cross_entropy_with_logits(wide, truth, {}, {}, at::Reduction::None) *
                      error.pow(options.gamma);
  if (options.alpha >= 0.0) losses = losses * (truth * (2.0 * options.alpha - 1.0) + (1.0 - options.alpha));
  return reduced(losses, options.reduction);
}

}  // namespace tutti

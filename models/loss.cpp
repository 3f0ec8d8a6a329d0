#include "models/loss.h"

#include <ATen/ATen.h>

#include <vector>

#include "models/losses.h"
#include "recipe/plugin_maker.h"
#include "recipe/resolve.h"
#include "tensors/device.h"

namespace tutti {
namespace {

// Numbers of the recipe for the classes.
class ClassWeights {
 public:
  explicit ClassWeights(const std::vector<double>& weights) {
    if (!weights.empty()) weights_ = at::tensor(weights, at::kFloat);
  }
  bool given() const { return weights_.defined(); }
  int64_t count() const { return given() ? weights_.numel() : 0; }

  // [C], or undefined.
  at::Tensor on(c10::Device where) const {
    if (!given() || where.is_cpu()) return weights_;
    if (!on_device_.defined() || on_device_.device() != where) on_device_ = copy_to_device(weights_, where);
    return on_device_;
  }
  // [C, 1, ...] for scores [N, C, ...], or undefined.
  at::Tensor beside(const at::Tensor& scores) const {
    if (!given()) return {};
    std::vector<int64_t> shape(static_cast<size_t>(scores.dim()) - 1, 1);
    shape[0] = weights_.numel();
    return on(scores.device()).view(shape);
  }

 private:
  at::Tensor weights_;
  mutable at::Tensor on_device_;  // copied once
};

at::Tensor by_sample(const at::Tensor& elements) { return elements.reshape({elements.size(0), -1}); }

class CrossEntropyLoss final : public Loss {
 public:
  explicit CrossEntropyLoss(const CrossEntropyLossOptions& options) : weight_(options.weight) {}
  LossTargets targets() const override { return LossTargets::kClasses; }
  bool leaves_targets_out() const override { return true; }
  int64_t classes() const override { return weight_.count(); }
  at::Tensor class_weights(c10::Device where) const override { return weight_.on(where); }
  void prepare(c10::Device where) const override { weight_.on(where); }

  at::Tensor mean(const at::Tensor& outputs, const at::Tensor& target) const override {
    return soft_cross_entropy(outputs, target, {.weight = weight_.on(outputs.device())});
  }

  at::Tensor of_samples(const at::Tensor& outputs, const at::Tensor& target) const override {
    const at::Tensor losses = soft_cross_entropy(
        outputs, target, {.weight = weight_.on(outputs.device()), .reduction = LossReduction::kNone});
    if (losses.dim() == 1) return losses;
    const at::Tensor counted = holds_indices(outputs, target)
                                   ? target.ne(kIgnoredTarget)
                                   : target_masses(target).to(losses.scalar_type());
    return by_sample(losses).sum(1) / by_sample(counted).sum(1).clamp_min(1);
  }

  double items(const at::Tensor& target) const override {
    if (!weight_.given() || target.is_floating_point()) return counted_targets(target);
    const at::Tensor counted = target.flatten().masked_select(target.flatten().ge(0));
    if (counted.is_cpu()) require_known(counted, weight_.count(), kIgnoredTarget);
    return weight_.on(target.device()).index_select(0, counted).sum(at::kDouble).item<double>();
  }

 private:
  ClassWeights weight_;
};

// A function of each element of outputs and of targets made dense.
class ElementwiseLoss : public Loss {
 public:
  at::Tensor mean(const at::Tensor& outputs, const at::Tensor& target) const override {
    return elements(outputs, target, LossReduction::kMean);
  }
  at::Tensor of_samples(const at::Tensor& outputs, const at::Tensor& target) const override {
    return by_sample(elements(outputs, target, LossReduction::kNone)).mean(1);
  }

 protected:
  virtual at::Tensor elements(const at::Tensor& outputs, const at::Tensor& target,
                              LossReduction reduction) const = 0;
};

class BceWithLogitsLoss final : public ElementwiseLoss {
 public:
  explicit BceWithLogitsLoss(const std::vector<double>& pos_weight) : pos_weight_(pos_weight) {}
  LossTargets targets() const override { return LossTargets::kLabels; }
  int64_t classes() const override { return pos_weight_.count() == 1 ? 0 : pos_weight_.count(); }
  void prepare(c10::Device where) const override { pos_weight_.on(where); }

 private:
  at::Tensor elements(const at::Tensor& outputs, const at::Tensor& target,
                      LossReduction reduction) const override {
    return tutti::binary_cross_entropy_with_logits(
        outputs, target,
        {.pos_weight = pos_weight_.beside(outputs), .reduction = reduction, .scale_by_batch_size = false});
  }

  ClassWeights pos_weight_;
};

class BinaryCrossEntropyLoss final : public Loss {
 public:
  explicit BinaryCrossEntropyLoss(const std::vector<double>& pos_weight) : pos_weight_(pos_weight) {}
  LossTargets targets() const override { return LossTargets::kLabels; }
  int64_t classes() const override { return pos_weight_.count() == 1 ? 0 : pos_weight_.count(); }
  void prepare(c10::Device where) const override { pos_weight_.on(where); }

  at::Tensor mean(const at::Tensor& outputs, const at::Tensor& target) const override {
    return tutti::binary_cross_entropy_with_logits(outputs, target,
                                                   {.pos_weight = pos_weight_.beside(outputs)});
  }
  at::Tensor of_samples(const at::Tensor& outputs, const at::Tensor& target) const override {
    const BinaryCrossEntropyOptions each{.pos_weight = pos_weight_.beside(outputs),
                                         .reduction = LossReduction::kNone,
                                         .scale_by_batch_size = false};
    return by_sample(tutti::binary_cross_entropy_with_logits(outputs, target, each)).sum(1);
  }

 private:
  ClassWeights pos_weight_;
};

class FocalLoss final : public ElementwiseLoss {
 public:
  explicit FocalLoss(const FocalLossOptions& options) : options_(options) {}
  LossTargets targets() const override { return LossTargets::kLabels; }

 private:
  at::Tensor elements(const at::Tensor& outputs, const at::Tensor& target,
                      LossReduction reduction) const override {
    return sigmoid_focal_loss(outputs, target,
                              {.alpha = options_.alpha, .gamma = options_.gamma, .reduction = reduction});
  }

  FocalLossOptions options_;
};

class DiceLoss final : public ElementwiseLoss {
 public:
  explicit DiceLoss(const DiceLossOptions& options) : options_(options) {}
  LossTargets targets() const override { return LossTargets::kLabels; }
  bool leaves_targets_out() const override { return true; }
  bool needs_probabilities() const override { return !options_.sigmoid && !options_.softmax; }

 private:
  at::Tensor elements(const at::Tensor& outputs, const at::Tensor& target,
                      LossReduction reduction) const override {
    DiceLossOptions options = options_;
    options.reduction = reduction;
    if (outputs.dim() > 2) return dice_loss(outputs, target, options);
    return dice_loss(outputs.unsqueeze(-1), target.unsqueeze(-1), options);  // else areas of the whole batch
  }

  DiceLossOptions options_;
};

class ValueLoss : public ElementwiseLoss {
 public:
  LossTargets targets() const override { return LossTargets::kValues; }

 protected:
  virtual at::Tensor value_losses(const at::Tensor& outputs, const at::Tensor& values,
                                  int64_t reduction) const = 0;

 private:
  at::Tensor elements(const at::Tensor& outputs, const at::Tensor& target,
                      LossReduction reduction) const override {
    return value_losses(outputs, value_target(outputs, target), static_cast<int64_t>(reduction));
  }
};

class MseLoss final : public ValueLoss {
  at::Tensor value_losses(const at::Tensor& outputs, const at::Tensor& values,
                          int64_t reduction) const override {
    return at::mse_loss(outputs, values, reduction);
  }
};

class L1Loss final : public ValueLoss {
  at::Tensor value_losses(const at::Tensor& outputs, const at::Tensor& values,
                          int64_t reduction) const override {
    return at::l1_loss(outputs, values, reduction);
  }
};

class SmoothL1Loss final : public ValueLoss {
 public:
  explicit SmoothL1Loss(double beta) : beta_(beta) {}

 private:
  at::Tensor value_losses(const at::Tensor& outputs, const at::Tensor& values,
                          int64_t reduction) const override {
    return at::smooth_l1_loss(outputs, values, reduction, beta_);
  }

  double beta_;
};

}  // namespace

double Loss::items(const at::Tensor& target) const { return static_cast<double>(target.size(0)); }

namespace {

// A job puts numbers in place of "balanced" where training targets are counted.
void require_counted(const Setting& keys, const char* weight) {
  if (keys.has(weight) && keys.at(weight).is_text())
    keys.at(weight).fail("counts the training targets of losses in [model]; expected numbers here");
}

}  // namespace

LossPtr CrossEntropyLossOptions::make(const Setting& keys) const {
  require_counted(keys, "weight");
  return std::make_shared<CrossEntropyLoss>(*this);
}

LossPtr BinaryCrossEntropyLossOptions::make(const Setting& keys) const {
  require_counted(keys, "pos_weight");
  return std::make_shared<BinaryCrossEntropyLoss>(pos_weight);
}

LossPtr BceWithLogitsLossOptions::make(const Setting& keys) const {
  require_counted(keys, "pos_weight");
  return std::make_shared<BceWithLogitsLoss>(pos_weight);
}

LossPtr MseLossOptions::make(const Setting&) const { return std::make_shared<MseLoss>(); }

LossPtr L1LossOptions::make(const Setting&) const { return std::make_shared<L1Loss>(); }

LossPtr SmoothL1LossOptions::make(const Setting&) const { return std::make_shared<SmoothL1Loss>(beta); }

LossPtr DiceLossOptions::make(const Setting& keys) const {
  if (sigmoid && softmax) keys.at("softmax").fail("excludes sigmoid; keep one of the two");
  return std::make_shared<DiceLoss>(*this);
}

LossPtr FocalLossOptions::make(const Setting&) const { return std::make_shared<FocalLoss>(*this); }

LossPtr default_loss() { return std::make_shared<CrossEntropyLoss>(CrossEntropyLossOptions()); }

LossPtr make_loss(const Setting& chosen) {
  const Setting keys = resolve_section(loss_catalog(), chosen.is_text() ? table_of_kind(chosen) : chosen, {});
  return is_of_plugin(keys) ? made_by_plugin<LossPtr>(keys) : LossKinds::made<LossPtr>(keys);
}

}  // namespace tutti

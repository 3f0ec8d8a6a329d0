#include "models/zoo/targets.h"

#include <string>

#include "models/loss.h"
#include "models/zoo/sample_checks.h"

namespace tutti {
namespace {

constexpr const char* kTarget = "target";
constexpr int64_t kLabelValues = 2;  // 0 and 1

// [model]'s loss and the targets of the data.
class Targets {
 public:
  Targets(const Setting& section, const SampleSpec& samples)
      : section_(section),
        samples_(samples),
        loss_(section.has("loss") ? make_loss(section.at("loss")) : default_loss()),
        shape_(shape_of(section, samples, kTarget)),
        are_integers_(has_dtype(samples, kTarget, at::kLong)) {}

  bool are_values() const { return loss_->targets() == LossTargets::kValues; }
  bool may_be_labels() const { return loss_->targets() == LossTargets::kLabels; }
  bool are_indices() const { return !are_values() && are_integers_; }
  const Shape& shape() const { return shape_; }

  // A number for each output.
  void require_dense() const {
    if (loss_->targets() == LossTargets::kClasses && (are_integers_ || shape_.empty())) refuse_classes();
  }

  [[noreturn]] void refuse_classes() const {
    refuse(section_, samples_, kTarget, "a class index (an integer) a sample", other_way());
  }

  // For outputs of a model that are scores.
  void require_loss_of_scores() const {
    if (loss_->needs_probabilities())
      section_.at("loss").fail("expected sigmoid = true or softmax = true: the model gives scores");
  }

  void require_labels() const {
    if (are_integers_ && samples_.classes > kLabelValues)
      section_.at("loss").fail("expected targets of 0 and 1: the data has targets up to " +
                               std::to_string(samples_.classes - 1));
  }

  void require_weights(int64_t outputs) const {
    const int64_t weights = loss_->classes();
    if (weights != 0 && weights != outputs)
      section_.at("loss").fail("it has " + std::to_string(weights) + " weights; the model has " +
                               std::to_string(outputs) + " classes");
  }

 private:
  const char* other_way() const {
    if (!are_integers_) return "; model.loss = \"mse\" takes values, \"bce_with_logits\" labels";
    return shape_.size() == 1 ? "; model.loss = \"bce_with_logits\" takes several labels a sample"
                              : "; model.kind = \"sequential\" takes a class for each pixel";
  }

  const Setting& section_;
  const SampleSpec& samples_;
  LossPtr loss_;
  const Shape& shape_;
  bool are_integers_;
};

bool asks_for_one(const Setting& section) {
  return section.has("num_classes") && section.at("num_classes").integer() == 1;
}

Shape with_one(const Shape& shape) {
  Shape longer{1};
  longer.insert(longer.end(), shape.begin(), shape.end());
  return longer;
}

bool has_scores_of(const Shape& outputs, const Shape& target) {
  return outputs.size() == target.size() + 1 && std::equal(target.begin(), target.end(), outputs.begin() + 1);
}

std::string wanted_outputs(const Targets& targets) {
  if (!targets.are_indices()) return "outputs " + shape_text(targets.shape()) + ", as the targets are";
  return targets.shape().empty() ? "scores of classes"
                                 : "scores of classes for each of " + shape_text(targets.shape());
}

}  // namespace

TargetPlan plan_targets(const Setting& section, const SampleSpec& samples) {
  const Targets targets(section, samples);
  targets.require_loss_of_scores();
  const Shape& shape = targets.shape();
  TargetPlan plan;
  if (targets.are_indices() && shape.empty() && !(targets.may_be_labels() && asks_for_one(section))) {
    plan.outputs = num_classes(section, samples);
  } else {
    targets.require_dense();
    if (shape.size() > 1)
      refuse(section, samples, kTarget, "a number, or a list of numbers; model \"sequential\" takes others");
    plan.outputs = agreed_size(section, "num_classes", shape.empty() ? 1 : shape[0], "targets a sample");
    plan.has_labels = !targets.are_values();
  }
  if (plan.has_labels) targets.require_labels();
  targets.require_weights(plan.outputs);
  return plan;
}

TargetPlan plan_targets(const Setting& section, const SampleSpec& samples, const Shape& outputs) {
  const Targets targets(section, samples);
  const Setting& key = section.at(section.has("layers") ? "layers" : "path");
  const bool is_single = outputs == with_one(targets.shape());
  const bool has_indices = targets.are_indices() && has_scores_of(outputs, targets.shape()) &&
                           !(is_single && targets.may_be_labels());
  TargetPlan plan{.outputs = outputs.empty() ? 1 : outputs[0]};
  if (has_indices && samples.classes > plan.outputs)
    key.fail("they end in " + std::to_string(plan.outputs) + " scores a sample; the data has targets up to " +
             std::to_string(samples.classes - 1));
  if (!has_indices) {
    if (!targets.are_indices()) targets.require_dense();
    const bool fits = is_single || (outputs == targets.shape() && !outputs.empty());
    if (!fits || (targets.are_indices() && !targets.may_be_labels()))
      key.fail("they end in " + shape_text(outputs) + " a sample, not in " + wanted_outputs(targets));
    plan.has_labels = !targets.are_values();
  }
  if (plan.has_labels) targets.require_labels();
  targets.require_weights(plan.outputs);
  return plan;
}

}  // namespace tutti

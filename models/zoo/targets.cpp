#include "models/zoo/targets.h"

#include <string>
#include <utility>

#include "models/loss.h"
#include "models/zoo/sample_checks.h"

namespace tutti {
namespace {

constexpr const char* kTarget = "target";
constexpr int64_t kLabelValues = 2;  // 0 and 1

// Integers; bytes too, but for "target", of which data make int64.
bool holds_integers(const SampleSpec& samples, const std::string& array) {
  if (has_dtype(samples, array, at::kLong)) return true;
  return array != kTarget && at::isIntegralType(samples.dtypes.at(array), /*includeBool=*/true);
}

// The loss of [model], or of one of [[model.losses]], and its targets in the data.
class Targets {
 public:
  Targets(const Setting& section, const SampleSpec& samples, const std::string& array = kTarget)
      : Targets(section, section.has("kind") ? section.at("kind") : section, samples, array) {}
  // `blamed`: for errors about the data.
  Targets(const Setting& section, const Setting& blamed, const SampleSpec& samples, std::string array)
      : section_(section),
        blamed_(blamed),
        samples_(samples),
        array_(std::move(array)),
        loss_(section.has("loss") ? make_loss(section.at("loss")) : default_loss()),
        shape_(samples.shapes.at(array_)),
        are_integers_(holds_integers(samples, array_)) {}

  bool are_values() const { return loss_->targets() == LossTargets::kValues; }
  bool may_be_labels() const { return loss_->targets() == LossTargets::kLabels; }
  bool are_indices() const { return !are_values() && are_integers_; }
  const Shape& shape() const { return shape_; }

  // A number for each output.
  void require_dense() const {
    if (loss_->targets() == LossTargets::kClasses && (are_integers_ || shape_.empty())) refuse_classes();
  }

  [[noreturn]] void refuse_classes() const {
    blamed_.fail("expected '" + array_ + "' as a class index (an integer) a sample; the data's is " +
                 samples_.describe(array_) + " a sample" + other_way());
  }

  // The data's number of classes; 0 = unknown.
  int64_t classes() const { return array_ == kTarget ? samples_.classes : 0; }

  // For outputs of a model that are scores.
  void require_loss_of_scores() const {
    if (loss_->needs_probabilities())
      section_.at("loss").fail("expected sigmoid = true or softmax = true: the model gives scores");
  }

  void require_labels() const {
    if (are_integers_ && classes() > kLabelValues)
      section_.at("loss").fail("expected targets of 0 and 1: the data has targets up to " +
                               std::to_string(classes() - 1));
  }

  void require_weights(int64_t outputs) const {
    const int64_t weights = loss_->classes();
    if (weights != 0 && weights != outputs)
      section_.at("loss").fail("it has " + std::to_string(weights) + " weights; the model has " +
                               std::to_string(outputs) + " classes");
  }

 private:
  std::string other_way() const {
    const std::string loss = section_.has("kind") ? "; model.loss = " : "; loss = ";
    if (!are_integers_)
      return loss +
             "\"mse\" takes values, \"bce_with_logits\" labels; "
             "target_type = \"class\", of a table, makes classes of its numbers";
    return shape_.size() == 1 ? loss + "\"bce_with_logits\" takes several labels a sample"
                              : "; model.kind = \"unet\" takes a class for each pixel";
  }

  const Setting& section_;
  const Setting& blamed_;
  const SampleSpec& samples_;
  std::string array_;
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
  const std::string alike = targets.shape().empty() ? "a number" : "outputs " + shape_text(targets.shape());
  if (!targets.are_indices()) return alike + ", as the targets are";
  return targets.shape().empty() ? "scores of classes"
                                 : "scores of classes for each of " + shape_text(targets.shape());
}

// Errors are those of `key`, and begin with `subject`: "they end in ".
TargetPlan plan_outputs(const Targets& targets, const Shape& outputs, const Setting& key,
                        const std::string& subject) {
  const bool is_single = outputs == with_one(targets.shape());
  const bool has_indices = targets.are_indices() && has_scores_of(outputs, targets.shape()) &&
                           !(is_single && targets.may_be_labels());
  TargetPlan plan{.outputs = outputs.empty() ? 1 : outputs[0]};
  if (has_indices && targets.classes() > plan.outputs)
    key.fail(subject + std::to_string(plan.outputs) + " scores a sample; the data has targets up to " +
             std::to_string(targets.classes() - 1));
  if (!has_indices) {
    if (!targets.are_indices()) targets.require_dense();
    const bool is_alike = outputs == targets.shape() && (!outputs.empty() || targets.are_values());
    if ((!is_single && !is_alike) || (targets.are_indices() && !targets.may_be_labels()))
      key.fail(subject + shape_text(outputs) + " a sample, not in " + wanted_outputs(targets));
    plan.has_labels = !targets.are_values();
  }
  if (plan.has_labels) targets.require_labels();
  targets.require_weights(plan.outputs);
  return plan;
}

int64_t classes_of_pixels(const Setting& section, const Targets& targets) {
  if (section.has("classes")) return positive(section.at("classes"));
  const Shape& shape = targets.shape();
  if (shape.size() > 2) return shape[0];
  if (!targets.are_indices()) return 1;
  if (targets.classes() == 0) section.fail("classes is needed: the data has no number of classes");
  return targets.classes();
}

}  // namespace

TargetPlan plan_pixels(const Setting& section, const SampleSpec& samples) {
  shape_of(section, samples, kTarget);
  const Targets targets(section, samples);
  targets.require_loss_of_scores();
  const Shape& image = shape_of(section, samples, "input");
  return plan_outputs(targets, {classes_of_pixels(section, targets), image[1], image[2]},
                      section.at(section.has("classes") ? "classes" : "kind"), "it ends in ");
}

TargetPlan plan_targets(const Setting& section, const SampleSpec& samples) {
  return plan_targets_in(kTarget, section, samples);
}

TargetPlan plan_targets_in(const std::string& array, const Setting& section, const SampleSpec& samples) {
  shape_of(section, samples, array);
  const Targets targets(section, samples, array);
  targets.require_loss_of_scores();
  const Shape& shape = targets.shape();
  TargetPlan plan;
  if (targets.are_indices() && shape.empty() && !(targets.may_be_labels() && asks_for_one(section))) {
    plan.outputs = num_classes(section, samples);
  } else {
    targets.require_dense();
    if (shape.size() > 1)
      refuse(section, samples, array, "a number, or a list of numbers; model \"sequential\" takes others");
    plan.outputs = agreed_size(section, "num_classes", shape.empty() ? 1 : shape[0], "targets a sample");
    plan.has_labels = !targets.are_values();
  }
  if (plan.has_labels) targets.require_labels();
  targets.require_weights(plan.outputs);
  return plan;
}

TargetPlan plan_targets(const Setting& section, const SampleSpec& samples, const Shape& outputs) {
  shape_of(section, samples, kTarget);
  const Setting& key = section.at(section.has("layers") ? "layers" : "path");
  return plan_outputs(Targets(section, samples), outputs, key, "they end in ");
}

TargetPlan plan_targets(const Setting& losses, const SampleSpec& samples, const std::string& target,
                        const Shape& outputs) {
  const Setting& key = losses.has("output") ? losses.at("output") : losses;
  return plan_outputs(Targets(losses, key, samples, target), outputs, key, "it ends in ");
}

}  // namespace tutti

#include "models/model.h"

#include <map>

#include "models/losses.h"
#include "runtime/error.h"

namespace tutti {

Outputs Model::eval_forward(const Batch& batch, std::optional<Outputs> outputs) {
  return outputs ? std::move(*outputs) : forward(batch);
}

std::vector<std::string> Model::get_metrics(bool) const { return {}; }

void Model::update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) {
  metric.update(outputs.tensor(), batch["target"]);
}

std::vector<Tokens> Model::generate(const std::vector<Prompt>&, const GenerationOptions&) {
  TUTTI_ASSERT(false, std::string(kind()) + " cannot generate text");
  return {};
}

at::Tensor Classifier::loss(const Outputs& outputs, const Batch& batch) {
  const at::Tensor &scores = outputs.tensor(), &target = batch["target"];
  if (loss_ == ClassifierLoss::kSoftCrossEntropy) return soft_cross_entropy(scores, target);
  return binary_cross_entropy_with_logits(scores, target, BinaryCrossEntropyOptions());
}

at::Tensor Classifier::losses(const Outputs& outputs, const Batch& batch) {
  const at::Tensor &scores = outputs.tensor(), &target = batch["target"];
  constexpr auto kNone = LossReduction::kNone;
  if (loss_ == ClassifierLoss::kSoftCrossEntropy)
    return soft_cross_entropy(scores, target, {.reduction = kNone});
  const BinaryCrossEntropyOptions of_elements{.reduction = kNone, .scale_by_batch_size = false};
  return binary_cross_entropy_with_logits(scores, target, of_elements).sum(1);
}

// Binary cross entropy has no targets that do not count.
double Classifier::loss_weight(const Batch& batch) const {
  return loss_ == ClassifierLoss::kSoftCrossEntropy ? counted_targets(batch["target"])
                                                    : Model::loss_weight(batch);
}

void choose_loss(Model& model, const std::string& name) {
  static const std::map<std::string, ClassifierLoss> kLosses = {
      {"soft_cross_entropy", ClassifierLoss::kSoftCrossEntropy},
      {"binary_cross_entropy_with_logits", ClassifierLoss::kBinaryCrossEntropyWithLogits}};
  const auto found = kLosses.find(name);
  if (found == kLosses.end()) throw UserError("there is no such loss");
  auto* classifier = dynamic_cast<Classifier*>(&model);
  if (classifier == nullptr) throw UserError(std::string(model.kind()) + " has a loss of its own");
  classifier->set_loss(found->second);
}

std::vector<std::string> Classifier::get_metrics(bool is_train) const {
  if (is_train) return {"MulticlassAccuracy"};
  return {"MulticlassAccuracy", "CrossEntropy"};
}

}  // namespace tutti

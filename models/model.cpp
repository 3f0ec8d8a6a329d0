#include "models/model.h"

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
  return loss_->mean(outputs.tensor(), batch["target"]);
}

at::Tensor Classifier::losses(const Outputs& outputs, const Batch& batch) {
  return loss_->of_samples(outputs.tensor(), batch["target"]);
}

at::Tensor mean_loss(Model& model, const Outputs& outputs, const Batch& batch) {
  at::Tensor loss = model.loss(outputs, batch);
  if (loss.defined() && loss.numel() == 1) return loss;
  const std::string shape = loss.defined() ? "has the shape " + shape_text(loss.sizes()) : "is undefined";
  throw UserError(std::string("the loss of ") + model.kind() + ' ' + shape +
                  "; expected one number, the mean over the batch");
}

double Classifier::loss_weight(const Batch& batch) const { return loss_->items(batch["target"]); }

void choose_loss(Model& model, const Setting& loss) {
  auto* classifier = dynamic_cast<Classifier*>(&model);
  if (classifier == nullptr) loss.fail(std::string(model.kind()) + " has a loss of its own");
  classifier->set_loss(make_loss(loss));
}

std::vector<std::string> Classifier::get_metrics(bool is_train) const {
  const bool has_values = loss_->targets() == LossTargets::kValues;
  if (has_values && !is_train) return {"MeanSquaredError"};
  if (has_values || has_labels_) return {};
  if (is_train) return {"MulticlassAccuracy"};
  return {"MulticlassAccuracy", "CrossEntropy"};
}

}  // namespace tutti

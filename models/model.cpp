#include "models/model.h"

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
  return soft_cross_entropy(outputs.tensor(), batch["target"]);
}

std::vector<std::string> Classifier::get_metrics(bool is_train) const {
  if (is_train) return {"MulticlassAccuracy"};
  return {"MulticlassAccuracy", "CrossEntropy"};
}

}  // namespace tutti

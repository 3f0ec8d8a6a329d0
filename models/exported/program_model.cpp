#include "models/exported/program_model.h"

#include <algorithm>
#include <utility>

#include "models/zoo/targets.h"

namespace tutti {

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

void ProgramModel::plan(const Setting& section, const SampleSpec& samples, Shape outputs) {
  if (has_loss_) return;
  if (std::ranges::count(outputs, -1) > 0 || !samples.shapes.contains("target")) return;
  const Shape& target = samples.shapes.at("target");
  const auto scores = [&](auto first) {
    return outputs.size() == target.size() + 1 && std::equal(target.begin(), target.end(), first);
  };
  classes_are_last_ = outputs.size() > 1 && scores(outputs.begin()) && !scores(outputs.begin() + 1);
  if (classes_are_last_) std::ranges::rotate(outputs, outputs.end() - 1);
  set_labels(plan_targets(section, samples, outputs).has_labels);
}

TensorTree ProgramModel::outputs_of(at::Tensor prediction, at::Tensor loss) const {
  if (classes_are_last_) prediction = prediction.movedim(-1, 1);
  if (!has_loss_) return prediction;
  return TensorTree::Children{{"prediction", std::move(prediction)}, {"loss", std::move(loss)}};
}

at::Tensor ProgramModel::loss(const Outputs& outputs, const Batch& batch) {
  return has_loss_ ? outputs["loss"] : Classifier::loss(outputs, batch);
}

at::Tensor ProgramModel::losses(const Outputs& outputs, const Batch& batch) {
  return has_loss_ ? at::Tensor() : Classifier::losses(outputs, batch);
}

double ProgramModel::loss_weight(const Batch& batch) const {
  return has_loss_ ? Model::loss_weight(batch) : Classifier::loss_weight(batch);
}

void ProgramModel::update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) {
  Classifier::update_metric(batch, has_loss_ ? Outputs(outputs["prediction"]) : outputs, metric);
}

}  // namespace tutti

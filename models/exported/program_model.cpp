#include "models/exported/program_model.h"

#include <algorithm>

#include "models/losses.h"
#include "models/zoo/targets.h"
#include "tensors/ignored_target.h"

namespace tutti {

void ProgramModel::plan(const Setting& section, const SampleSpec& samples,
                        const exported::OutputLosses::Shapes& outputs, std::size_t prediction) {
  has_target_ = samples.shapes.contains("target");
  prediction_ = outputs.at(prediction).first;
  if (section.has("losses"))
    plan_losses(section, samples, outputs);
  else if (!has_loss_)
    plan_prediction(section, samples, outputs.at(prediction).second);
}

void ProgramModel::plan_losses(const Setting& section, const SampleSpec& samples,
                               const exported::OutputLosses::Shapes& outputs) {
  for (const char* key : {"loss", "loss_output", "prediction"})
    if (section.has(key)) section.at(key).fail("excludes losses, where each says its output and its loss");
  losses_.emplace(section.at("losses"), outputs, samples);
  const bool ignores = section.has("ignore_index") && section.at("ignore_index").integer() != kIgnoredTarget;
  if (ignores) losses_->require_ignoring(section.at("ignore_index"));
  if (losses_->first_loss()) set_loss(losses_->first_loss());
  set_labels(losses_->first_has_labels());
}

void ProgramModel::plan_prediction(const Setting& section, const SampleSpec& samples, Shape outputs) {
  if (std::ranges::count(outputs, -1) > 0 || !has_target_) return;
  classes_are_last_ = exported::has_classes_last(outputs, samples.shapes.at("target"));
  if (classes_are_last_) std::ranges::rotate(outputs, outputs.end() - 1);
  set_labels(plan_targets(section, samples, outputs).has_labels);
}

std::vector<std::string> ProgramModel::input_arrays(const std::vector<std::string>& given,
                                                    const std::vector<std::string>& needed,
                                                    const std::vector<std::string>& all,
                                                    const std::string& taker) {
  if (given.empty()) return needed.size() == 1 ? std::vector<std::string>{"input"} : needed;
  if (given.size() < needed.size() || given.size() > all.size())
    throw UserError("inputs: " + taker + " takes " + exported::quoted_list(all) + "; found " +
                    std::to_string(given.size()) + " arrays");
  return given;
}

std::size_t ProgramModel::output_place(const std::vector<std::string>& names, const std::string& name,
                                       const char* key, const char* owner) {
  const auto place = std::ranges::find(names, name);
  if (place == names.end())
    throw UserError(std::string(key) + ": the " + owner + " has no output '" + name + "'; it has " +
                    exported::quoted_list(names));
  return static_cast<std::size_t>(place - names.begin());
}

std::size_t ProgramModel::prediction_place(const std::vector<std::string>& names,
                                           const std::string& prediction, bool losses_are_given,
                                           const char* owner) {
  if (prediction.empty() && !names.empty() && (names.size() == 1 || losses_are_given)) return 0;
  return output_place(names, prediction.empty() ? "logits" : prediction, "prediction", owner);
}

TensorTree ProgramModel::outputs_of(at::Tensor prediction, at::Tensor loss) const {
  if (classes_are_last_) prediction = prediction.movedim(-1, 1);
  if (!has_loss_) return prediction;
  return TensorTree::Children{{"prediction", std::move(prediction)}, {"loss", std::move(loss)}};
}

TensorTree ProgramModel::named(std::vector<std::pair<std::string, at::Tensor>> outputs) {
  if (outputs.size() == 1 && outputs[0].first.empty()) return std::move(outputs[0].second);
  TensorTree::Children children;
  for (auto& [name, tensor] : outputs) children.emplace_back(name, std::move(tensor));
  return children;
}

at::Tensor ProgramModel::loss(const Outputs& outputs, const Batch& batch) {
  if (losses_) return losses_->sum(outputs, batch);
  return has_loss_ ? outputs["loss"].mean() : Classifier::loss(outputs, batch);
}

at::Tensor ProgramModel::losses(const Outputs& outputs, const Batch& batch) {
  if (losses_) return losses_->sample_losses(outputs, batch);
  return has_loss_ ? at::Tensor() : Classifier::losses(outputs, batch);
}

bool ProgramModel::takes_dense_targets() const {
  return losses_ ? losses_->takes_dense_targets() : !has_loss_ && Classifier::takes_dense_targets();
}

void ProgramModel::prepare_loss(c10::Device where) {
  losses_ ? losses_->prepare(where) : Classifier::prepare_loss(where);
}

bool ProgramModel::uses_all_ranks() const {
  return losses_ ? losses_->uses_all_ranks() : Classifier::uses_all_ranks();
}

void ProgramModel::set_ranks(AllRanks* ranks) {
  Classifier::set_ranks(ranks);
  if (losses_) losses_->set_ranks(ranks);
}

double ProgramModel::loss_weight(const Batch& batch) const {
  if (losses_) return losses_->weight(batch);
  return has_loss_ ? Model::loss_weight(batch) : Classifier::loss_weight(batch);
}

std::vector<std::string> ProgramModel::get_metrics(bool is_train) const {
  const bool has_targets = losses_ ? losses_->first_loss() != nullptr : !has_loss_ || has_target_;
  return has_targets ? Classifier::get_metrics(is_train) : std::vector<std::string>();
}

void ProgramModel::update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) {
  const auto [output, target] = compared(outputs, batch, "", "");
  metric.update(output, target);
}

std::vector<LossParts::Part> ProgramModel::loss_parts() const {
  return losses_ && losses_->is_sum() ? losses_->parts() : std::vector<Part>();
}

std::vector<at::Tensor> ProgramModel::part_means(const Outputs& outputs, const Batch& batch) const {
  return losses_->means(outputs, batch);
}

LossParts::Compared ProgramModel::compared(const Outputs& outputs, const Batch& batch,
                                           const std::string& output, const std::string& target) const {
  if (losses_) return losses_->compared(outputs, batch, output, target);
  if (!output.empty() && output != prediction_)
    throw UserError(prediction_.empty() ? "the program has one output without a name; leave this key out"
                                        : "the model's output is '" + prediction_ +
                                              "' alone; with [[model.losses]] it has all others too");
  return {has_loss_ ? outputs["prediction"] : outputs.tensor(),
          wide_indices(batch[target.empty() ? "target" : target])};
}

}  // namespace tutti

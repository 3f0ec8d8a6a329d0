#include "models/exported/exported_model.h"

#include <algorithm>
#include <utility>

#include "models/zoo/targets.h"
#include "runtime/error.h"
#include "tensors/ignored_target.h"

namespace tutti {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

std::vector<std::string> arrays_of(const ExportedOptions& options, const exported::Program& program) {
  if (options.inputs.empty())
    return program.user_inputs.size() == 1 ? std::vector<std::string>{"input"} : program.user_inputs;
  if (options.inputs.size() != program.user_inputs.size())
    throw UserError("inputs: the program takes " + listed(program.user_inputs) + "; found " +
                    std::to_string(options.inputs.size()) + " arrays");
  return options.inputs;
}

exported::Program joined_program(const exported::Archive& archive) {
  exported::Program program = exported::parse_program(archive.program());
  exported::join_tied(program, archive);
  return program;
}

std::size_t output_of(const std::string& wanted, const char* key, const exported::Program& program) {
  const auto& names = program.output_names;
  const auto found = std::ranges::find(names, wanted);
  if (found == names.end())
    throw UserError(std::string(key) + ": the program has no output '" + wanted + "'; it has " +
                    listed(names));
  return static_cast<std::size_t>(found - names.begin());
}

std::size_t prediction_of(const ExportedOptions& options, const exported::Program& program) {
  const bool is_single = program.output_names.size() == 1;
  if (options.prediction.empty() && (is_single || !options.losses.is_none())) return 0;
  return output_of(options.prediction.empty() ? "logits" : options.prediction, "prediction", program);
}

Shape of_sample(const Shape& sizes) { return {sizes.begin() + (sizes.empty() ? 0 : 1), sizes.end()}; }

bool fits(const Shape& wanted, const Shape& found) {
  return std::ranges::equal(wanted, found,
                            [](int64_t one, int64_t other) { return one == -1 || one == other; });
}

}  // namespace

ModelPtr ExportedOptions::make(const Setting& section, const SampleSpec& samples) const {
  std::shared_ptr<ExportedModel> model;
  try {
    model = std::make_shared<ExportedModel>(*this);
  } catch (const UserError& error) {
    section.at("path").fail(error);
  }
  model->fit(section, samples);
  return model;
}

ExportedModel::ExportedModel(const ExportedOptions& options)
    : ExportedModel(options, std::make_shared<const exported::Archive>(options.path)) {}

ExportedModel::ExportedModel(const ExportedOptions& options,
                             const std::shared_ptr<const exported::Archive>& archive)
    : ExportedModel(options, joined_program(*archive), archive) {}

ExportedModel::ExportedModel(const ExportedOptions& options, const exported::Program& program,
                             const std::shared_ptr<const exported::Archive>& archive)
    : PartLayer(exported::make_part(program, archive), archive),
      prediction_(prediction_of(options, program)) {
  const auto meta_of = [&](const std::string& value) {
    const auto meta = program.metas.find(value);
    return meta == program.metas.end() ? Meta() : meta->second;
  };
  const auto arrays = arrays_of(options, program);
  for (std::size_t i = 0; i < arrays.size(); ++i)
    inputs_.push_back({program.user_inputs[i], arrays[i], meta_of(program.user_inputs[i])});
  for (std::size_t i = 0; i < program.output_names.size(); ++i) {
    const std::size_t place = program.output_places.at(i);
    outputs_.push_back({program.output_names[i], place, meta_of(program.graph.outputs.at(place).value)});
  }
  if (!options.loss_output.empty()) loss_ = output_of(options.loss_output, "loss_output", program);
}

void ExportedModel::fit(const Setting& section, const SampleSpec& samples) {
  const Setting& path = section.at("path");
  try {
    for (const Input& one : inputs_) require(one, samples);
  } catch (const UserError& error) {
    path.fail(error);
  }
  has_target_ = samples.shapes.contains("target");
  if (section.has("losses"))
    fit_losses(section, samples);
  else if (!loss_)
    fit_prediction(section, samples);
}

void ExportedModel::fit_losses(const Setting& section, const SampleSpec& samples) {
  for (const char* key : {"loss", "loss_output", "prediction"})
    if (section.has(key)) section.at(key).fail("excludes losses, where each says its output and its loss");
  exported::OutputLosses::Shapes shapes;
  for (const Output& one : outputs_) shapes.emplace_back(one.name, of_sample(one.meta.sizes));
  losses_.emplace(section.at("losses"), shapes, samples);
  const bool ignores = section.has("ignore_index") && section.at("ignore_index").integer() != kIgnoredTarget;
  if (ignores) losses_->require_ignoring(section.at("ignore_index"));
  if (losses_->first_loss()) set_loss(losses_->first_loss());
  set_labels(losses_->first_has_labels());
}

void ExportedModel::fit_prediction(const Setting& section, const SampleSpec& samples) {
  Shape outputs = of_sample(outputs_.at(prediction_).meta.sizes);
  if (std::ranges::count(outputs, -1) > 0 || !samples.shapes.contains("target")) return;
  const Shape& target = samples.shapes.at("target");
  const auto scores = [&](auto first) {
    return outputs.size() == target.size() + 1 && std::equal(target.begin(), target.end(), first);
  };
  classes_are_last_ = outputs.size() > 1 && scores(outputs.begin()) && !scores(outputs.begin() + 1);
  if (classes_are_last_) std::ranges::rotate(outputs, outputs.end() - 1);
  set_labels(plan_targets(section, samples, outputs).has_labels);
}

void ExportedModel::require(const Input& input, const SampleSpec& samples) const {
  const Shape& found = samples.shapes.at(input.array);
  if (!input.meta.sizes.empty() && input.meta.sizes[0] != -1)
    throw UserError("it was exported for batches of " + std::to_string(input.meta.sizes[0]) +
                    " samples alone; torch.export.export makes the batch free by dynamic_shapes");
  const Shape wanted = of_sample(input.meta.sizes);
  const auto dtype = samples.dtypes.find(input.array);
  const bool has_dtype = dtype == samples.dtypes.end() || dtype->second == input.meta.dtype;
  if (fits(wanted, found) && has_dtype) return;
  throw UserError("its input '" + input.name + "' is " + std::string(c10::toString(input.meta.dtype)) + " " +
                  shape_text(wanted) + " a sample; '" + input.array + "' of the data is " +
                  samples.describe(input.array));
}

TensorTree ExportedModel::forward(const Batch& batch) {
  exported::Values given;
  for (const Input& one : inputs_) given.emplace_back(batch[one.array]);
  const exported::Values found = run_part(std::move(given));
  if (losses_) return named(found);
  at::Tensor prediction = found.at(outputs_.at(prediction_).place).toTensor();
  if (classes_are_last_) prediction = prediction.movedim(-1, 1);
  if (!loss_) return prediction;
  return TensorTree::Children{{"prediction", prediction},
                              {"loss", found.at(outputs_.at(*loss_).place).toTensor()}};
}

TensorTree ExportedModel::named(const exported::Values& found) const {
  if (outputs_.size() == 1 && outputs_[0].name.empty()) return found.at(outputs_[0].place).toTensor();
  TensorTree::Children outputs;
  for (const Output& one : outputs_)
    if (const c10::IValue& value = found.at(one.place); value.isTensor())
      outputs.emplace_back(one.name, value.toTensor());
  return outputs;
}

at::Tensor ExportedModel::loss(const Outputs& outputs, const Batch& batch) {
  if (losses_) return losses_->sum(outputs, batch);
  return loss_ ? outputs["loss"] : Classifier::loss(outputs, batch);
}

at::Tensor ExportedModel::losses(const Outputs& outputs, const Batch& batch) {
  if (losses_) return losses_->of_samples(outputs, batch);
  return loss_ ? at::Tensor() : Classifier::losses(outputs, batch);
}

bool ExportedModel::takes_dense_targets() const {
  return losses_ ? losses_->takes_dense_targets() : !loss_ && Classifier::takes_dense_targets();
}

void ExportedModel::prepare_loss(c10::Device where) {
  losses_ ? losses_->prepare(where) : Classifier::prepare_loss(where);
}

double ExportedModel::loss_weight(const Batch& batch) const {
  if (losses_) return losses_->weight(batch);
  return loss_ ? Model::loss_weight(batch) : Classifier::loss_weight(batch);
}

std::vector<std::string> ExportedModel::get_metrics(bool is_train) const {
  const bool has_targets = losses_ ? losses_->first_loss() != nullptr : !loss_ || has_target_;
  return has_targets ? Classifier::get_metrics(is_train) : std::vector<std::string>();
}

void ExportedModel::update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) {
  const auto [output, target] = compared(outputs, batch, "", "");
  metric.update(output, target);
}

std::vector<LossParts::Part> ExportedModel::loss_parts() const {
  return losses_ && losses_->is_sum() ? losses_->parts() : std::vector<Part>();
}

std::vector<at::Tensor> ExportedModel::part_means(const Outputs& outputs, const Batch& batch) const {
  return losses_->means(outputs, batch);
}

LossParts::Compared ExportedModel::compared(const Outputs& outputs, const Batch& batch,
                                            const std::string& output, const std::string& target) const {
  if (losses_) return losses_->compared(outputs, batch, output, target);
  const std::string& name = outputs_.at(prediction_).name;
  if (!output.empty() && output != name)
    throw UserError("the model's output is '" + name +
                    "' alone; with [[model.losses]] it has all others too");
  return {loss_ ? outputs["prediction"] : outputs.tensor(), batch[target.empty() ? "target" : target]};
}

}  // namespace tutti

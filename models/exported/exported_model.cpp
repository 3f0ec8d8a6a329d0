#include "models/exported/exported_model.h"

#include <algorithm>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

std::vector<std::string> arrays_of(const ExportedOptions& options, const exported::Program& program) {
  if (options.inputs.empty())
    return program.user_inputs.size() == 1 ? std::vector<std::string>{"input"} : program.user_inputs;
  if (options.inputs.size() != program.user_inputs.size())
    throw UserError("inputs: the program takes " + exported::quoted_list(program.user_inputs) + "; found " +
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
                    exported::quoted_list(names));
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
  if (!options.loss_output.empty()) {
    loss_ = output_of(options.loss_output, "loss_output", program);
    set_has_loss();
  }
}

void ExportedModel::fit(const Setting& section, const SampleSpec& samples) {
  const Setting& path = section.at("path");
  try {
    for (const Input& one : inputs_) require(one, samples);
  } catch (const UserError& error) {
    path.fail(error);
  }
  exported::OutputLosses::Shapes shapes;
  for (const Output& one : outputs_) shapes.emplace_back(one.name, of_sample(one.meta.sizes));
  plan(section, samples, shapes, prediction_);
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
  for (const Input& one : inputs_) {
    const at::Tensor& array = batch[one.array];
    if (one.meta.most > 0 && array.size(0) > one.meta.most)
      throw UserError("the program was exported for at most " + std::to_string(one.meta.most) +
                      " samples at once, and gets " + std::to_string(array.size(0)) +
                      "; microbatches may be smaller (train.grad_accum), or torch.export.Dim's max larger");
    given.emplace_back(array);
  }
  const exported::Values found = run_part(std::move(given));
  const auto tensor = [&](std::size_t output) { return found.at(outputs_.at(output).place).toTensor(); };
  if (!has_losses()) return outputs_of(tensor(prediction_), loss_ ? tensor(*loss_) : at::Tensor());
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const Output& one : outputs_)
    if (const c10::IValue& value = found.at(one.place); value.isTensor())
      all.emplace_back(one.name, value.toTensor());
  return named(std::move(all));
}

}  // namespace tutti

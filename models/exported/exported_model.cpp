#include "models/exported/exported_model.h"

#include <algorithm>
#include <utility>

#include "runtime/error.h"

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

std::size_t output_of(const std::string& wanted, const exported::Program& program) {
  const auto& names = program.output_names;
  if (wanted.empty() && names.size() == 1) return 0;
  const std::string name = wanted.empty() ? "logits" : wanted;
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw UserError("prediction: the program has no output '" + name + "'; it has " + listed(names));
}

}  // namespace

ExportedModel::ExportedModel(const ExportedOptions& options)
    : ExportedModel(options, std::make_shared<const exported::Archive>(options.path)) {}

ExportedModel::ExportedModel(const ExportedOptions& options,
                             const std::shared_ptr<const exported::Archive>& archive)
    : ExportedModel(options, joined_program(*archive), archive) {}

ExportedModel::ExportedModel(const ExportedOptions& options, const exported::Program& program,
                             const std::shared_ptr<const exported::Archive>& archive)
    : PartLayer(exported::make_part(program, archive), archive),
      arrays_(arrays_of(options, program)),
      prediction_(program.output_places.at(output_of(options.prediction, program))) {}

ModelPtr ExportedOptions::make(const Setting& section, const SampleSpec& samples) const {
  try {
    auto model = std::make_shared<ExportedModel>(*this);
    model->require_arrays(samples);
    return model;
  } catch (const UserError& error) {
    section.at("path").fail(error);
  }
}

void ExportedModel::require_arrays(const SampleSpec& samples) const {
  for (const std::string& array : arrays_) samples.shapes.at(array);
}

TensorTree ExportedModel::forward(const Batch& batch) {
  exported::Values given;
  for (const std::string& array : arrays_) given.emplace_back(batch[array]);
  const exported::Values found = run_part(std::move(given));
  return found.at(prediction_).toTensor();
}

}  // namespace tutti

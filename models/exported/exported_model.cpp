#include "models/exported/exported_model.h"

#include <algorithm>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr const char* kOwner = "program";  // in errors

exported::Program joined_program(const exported::Archive& archive) {
  exported::Program program = exported::parse_program(archive.program());
  exported::join_tied(program, archive);
  return program;
}

Shape sample_shape(const Shape& sizes) { return {sizes.begin() + (sizes.empty() ? 0 : 1), sizes.end()}; }

// Sizes of -1 are free.
bool fits(const Shape& sizes, const Shape& array) {
  return std::ranges::equal(sizes, array,
                            [](int64_t size, int64_t given) { return size == -1 || size == given; });
}

}  // namespace

ModelPtr ExportedOptions::make(const Setting& section, const SampleSpec& samples) const {
  return make_program<ExportedModel>(*this, section, samples);
}

ExportedModel::ExportedModel(const ExportedOptions& options)
    : ExportedModel(options, std::make_shared<const exported::Archive>(options.path)) {}

ExportedModel::ExportedModel(const ExportedOptions& options,
                             const std::shared_ptr<const exported::Archive>& archive)
    : ExportedModel(options, joined_program(*archive), archive) {}

ExportedModel::ExportedModel(const ExportedOptions& options, const exported::Program& program,
                             const std::shared_ptr<const exported::Archive>& archive)
    : PartLayer(exported::make_part(program, archive), archive),
      prediction_(
          prediction_place(program.output_names, options.prediction, !options.losses.is_none(), kOwner)),
      writes_in_place_(exported::writes_in_place(program.graph)) {
  const auto meta_of = [&](const std::string& value) {
    const auto meta = program.metas.find(value);
    return meta == program.metas.end() ? Meta() : meta->second;
  };
  const auto arrays = input_arrays(options.inputs, program.user_inputs, program.user_inputs, "the program");
  for (std::size_t i = 0; i < arrays.size(); ++i)
    inputs_.push_back({program.user_inputs[i], arrays[i], meta_of(program.user_inputs[i])});
  for (std::size_t i = 0; i < program.output_names.size(); ++i) {
    const std::size_t place = program.output_places.at(i);
    outputs_.push_back({program.output_names[i], place, meta_of(program.graph.outputs.at(place).value)});
  }
  if (!options.loss_output.empty()) {
    loss_ = output_place(program.output_names, options.loss_output, "loss_output", kOwner);
    set_has_loss();
  }
}

void ExportedModel::fit(const Setting& section, const SampleSpec& samples) {
  const Setting& path = section.at("path");
  try {
    for (const Input& input : inputs_) require(input, samples);
  } catch (const UserError& error) {
    path.fail(error);
  }
  exported::OutputLosses::Shapes shapes;
  for (const Output& output : outputs_) shapes.emplace_back(output.name, sample_shape(output.meta.sizes));
  plan(section, samples, shapes, prediction_);
}

void ExportedModel::require(const Input& input, const SampleSpec& samples) const {
  const Shape& given = samples.shapes.at(input.array);
  if (!input.meta.sizes.empty() && input.meta.sizes[0] != -1)
    throw UserError("it was exported for batches of " + std::to_string(input.meta.sizes[0]) +
                    " samples alone; torch.export.export makes the batch free by dynamic_shapes");
  const Shape expected = sample_shape(input.meta.sizes);
  const auto dtype = samples.dtypes.find(input.array);
  const bool has_dtype = dtype == samples.dtypes.end() || dtype->second == input.meta.dtype;
  if (fits(expected, given) && has_dtype) return;
  throw UserError("its input '" + input.name + "' is " + std::string(c10::toString(input.meta.dtype)) + " " +
                  shape_text(expected) + " a sample; '" + input.array + "' of the data is " +
                  samples.describe(input.array));
}

TensorTree ExportedModel::forward(const Batch& batch) {
  exported::Values arrays;
  for (const Input& input : inputs_) {
    const at::Tensor& array = batch[input.array];
    if (input.meta.most > 0 && array.size(0) > input.meta.most)
      throw UserError("the program was exported for at most " + std::to_string(input.meta.most) +
                      " samples at once, and gets " + std::to_string(array.size(0)) +
                      "; microbatches may be smaller (train.grad_accum), or torch.export.Dim's max larger");
    arrays.emplace_back(writes_in_place_ ? array.clone() : array);  // a batch may be used again
  }
  const exported::Values values = run(std::move(arrays));
  const auto tensor = [&](std::size_t output) { return values.at(outputs_.at(output).place).toTensor(); };
  if (!has_losses()) return outputs_of(tensor(prediction_), loss_ ? tensor(*loss_) : at::Tensor());
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const Output& output : outputs_)
    if (const c10::IValue& value = values.at(output.place); value.isTensor())
      all.emplace_back(output.name, value.toTensor());
  return named(std::move(all));
}

}  // namespace tutti

#include "models/script/script_model.h"

#include <ATen/core/class_type.h>
#include <ATen/core/function.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>

#include "runtime/error.h"
#include "tensors/memory/out_of_memory.h"

namespace tutti {
namespace {

constexpr const char* kOwner = "script";  // in errors

class TrialScope {
 public:
  explicit TrialScope(script::Codes& codes) : codes_(codes) { codes_.set_trial(true); }
  ~TrialScope() { codes_.set_trial(false); }
  TrialScope(const TrialScope&) = delete;

 private:
  script::Codes& codes_;
};

}  // namespace

ModelPtr ScriptOptions::make(const Setting& section, const SampleSpec& samples) const {
  return make_program<ScriptModel>(*this, section, samples);
}

ScriptModel::ScriptModel(const ScriptOptions& options)
    : ScriptModel(options, std::make_shared<script::Script>(options.path)) {}

ScriptModel::ScriptModel(const ScriptOptions& options, const std::shared_ptr<script::Script>& script)
    : script_(script),
      net_(add_slot("", script::ScriptLayer::root(script))),
      arrays_(arrays_of(options, *script)),
      prediction_(options.prediction),
      loss_output_(options.loss_output),
      losses_are_given_(!options.losses.is_none()) {
  if (!loss_output_.empty()) set_has_loss();
}

// Arguments of forward, without self. Arguments that have a default may be left out.
std::vector<std::string> ScriptModel::arrays_of(const ScriptOptions& options, const script::Script& script) {
  const auto& schema = script.module.toObjectRef().type()->getMethod("forward").getSchema();
  std::vector<std::string> all, needed;
  for (std::size_t i = 1; i < schema.arguments().size(); ++i) {
    all.push_back(schema.arguments()[i].name());
    if (!schema.arguments()[i].default_value()) needed.push_back(all.back());
  }
  return input_arrays(options.inputs, needed, all, "forward");
}

void ScriptModel::fit(const Setting& section, const SampleSpec& samples) {
  const Setting& given = section.has("inputs") ? section.at("inputs") : section.at("path");
  Batch zeros;
  try {
    zeros = zero_samples(samples);
  } catch (const UserError& error) {
    given.fail(error);
  }
  std::optional<c10::IValue> result;
  try {
    const at::NoGradGuard no_gradients;
    const EvaluationMode evaluation(*this);
    const TrialScope trial(script_->codes);
    result = run(zeros);
  } catch (const OperatingError&) {
    throw;
  } catch (const std::exception& error) {  // zeros may be no sample; a real one fails with all words
    if (is_lack_of_memory(error)) throw;
  }
  script_->leave_tensors();
  if (!result && losses_are_given_)
    section.at("path").fail(
        "it fails on samples of zeros, so the shapes of its outputs, for losses, are not known");
  if (result) plan_for(section, samples, outputs_in(*result));
}

// `outputs`: of two samples.
void ScriptModel::plan_for(const Setting& section, const SampleSpec& samples, const NamedOutputs& outputs) {
  exported::OutputLosses::Shapes shapes;
  for (const auto& [name, tensor] : outputs) {
    const bool has_samples = tensor.dim() > 0 && tensor.size(0) == 2;
    shapes.emplace_back(name, has_samples ? tensor.sizes().slice(1).vec() : Shape());
  }
  std::size_t prediction = 0;
  try {
    prediction = prediction_in(outputs);
    if (has_loss()) loss_in(outputs);
  } catch (const UserError& error) {
    section.at("path").fail(error);
  }
  const at::Tensor& scores = outputs.at(prediction).second;
  if (losses_are_given_ || (scores.dim() > 0 && scores.size(0) == 2))
    plan(section, samples, shapes, prediction);
}

Batch ScriptModel::zero_samples(const SampleSpec& samples) const {
  Batch zeros;
  for (const std::string& array : arrays_) {
    Shape shape = samples.shapes.at(array);
    shape.insert(shape.begin(), 2);
    const auto dtype = samples.dtypes.find(array);
    zeros.set(array, at::zeros(shape, dtype == samples.dtypes.end() ? at::kFloat : dtype->second));
  }
  return zeros;
}

c10::IValue ScriptModel::run(const Batch& batch) {
  script::Values given;
  for (const std::string& array : arrays_) given.emplace_back(batch[array]);
  return script_->packing.unpack(net_(script_->packing.pack(given))).at(0);
}

TensorTree ScriptModel::forward(const Batch& batch) {
  NamedOutputs outputs = outputs_in(run(batch));
  if (has_losses()) return named(std::move(outputs));
  const at::Tensor& prediction = outputs[prediction_in(outputs)].second;
  return outputs_of(prediction, has_loss() ? outputs[loss_in(outputs)].second : at::Tensor());
}

ScriptModel::NamedOutputs ScriptModel::outputs_in(const c10::IValue& value) {
  NamedOutputs outputs;
  const auto add = [&](const std::string& name, const c10::IValue& item) {
    if (item.isTensor() && item.toTensor().defined()) outputs.emplace_back(name, item.toTensor());
  };
  if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict())
      if (entry.key().isString()) add(entry.key().toStringRef(), entry.value());
  } else if (value.isTuple()) {
    const auto type = value.type()->expect<c10::TupleType>();
    const auto& items = value.toTupleRef().elements();
    for (std::size_t i = 0; i < items.size(); ++i)
      add(type->schema() ? type->schema()->arguments()[i].name() : std::to_string(i), items[i]);
  } else if (value.isList()) {
    const auto items = value.toListRef();
    for (std::size_t i = 0; i < items.size(); ++i) add(std::to_string(i), items[i]);
  } else {
    add("0", value);
  }
  return outputs;
}

std::size_t ScriptModel::loss_in(const NamedOutputs& outputs) const {
  return output_place(exported::names_of(outputs), loss_output_, "loss_output", kOwner);
}

std::size_t ScriptModel::prediction_in(const NamedOutputs& outputs) const {
  return prediction_place(exported::names_of(outputs), prediction_, losses_are_given_, kOwner);
}

}  // namespace tutti

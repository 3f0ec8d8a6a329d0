#include "commands/exported_weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "algorithms/loop/ema.h"
#include "algorithms/surgery/lora.h"
#include "io/checkpoint/saved_state.h"
#include "io/json/json_setting.h"
#include "io/weights/torch_writer.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {

ExportedWeights::ExportedWeights(const Disk& disk, const Checkpoint& checkpoint, bool trained)
    : state_(state_of(checkpoint)), tensors_(disk, checkpoint) {
  const auto average = state_.listeners.find(kSavedEma);
  averaged_ = !trained && average != state_.listeners.end() && !average->second.empty();
  read_lora(checkpoint);
  for (const auto& [name, entry] : tensors_.entries())
    if (name.starts_with(kModelPrefix)) add(checkpoint, name.substr(kModelPrefix.size()));
  if (sources_.empty()) throw UserError({checkpoint.folder}, "it holds no weights");
  fan_in_fan_out_ = has_fan_in_fan_out(model_shapes(), model_section());
}

void ExportedWeights::read_lora(const Checkpoint& checkpoint) {
  for (const RequiredAlgorithm& algorithm : state_.required_algorithms) {
    if (algorithm.name != kLora) continue;
    if (algorithm.settings.empty())
      throw UserError({checkpoint.folder}, "LoRA is of a program; its r and alpha are not known");
    lora_table_ = algorithm.section(checkpoint.folder);
    lora_ = LoraOptions::kind().read(lora_table_);
  }
}

std::string ExportedWeights::exported_name(const std::string& name) const {
  const auto before = state_.names_before_surgery.find(name);
  return before == state_.names_before_surgery.end() ? name : before->second;
}

std::string ExportedWeights::source_of(const std::string& name) const {
  return averaged_ ? evaluated_name(tensors_, name) : std::string(kModelPrefix) + name;
}

void ExportedWeights::add(const Checkpoint& checkpoint, const std::string& name) {
  if (lora_ && is_of_adapter(name)) {
    if (!name.ends_with(kLoraAEnd)) return;
    const std::string module = without_end(name, kLoraAEnd);
    adapters_[exported_name(module + kWeightEnd)] = {source_of(name), source_of(module + kLoraBEnd)};
    return;
  }
  const std::string exported = exported_name(name);
  if (!sources_.emplace(exported, source_of(name)).second)
    throw UserError({checkpoint.folder}, "two tensors would have the name '" + exported + "'");
}

Setting ExportedWeights::model_section() const { return parse_recipe(state_.recipe, "").at("model"); }

NamedShapes ExportedWeights::model_shapes() const {
  NamedShapes shapes;
  for (const auto& [name, entry] : tensors_.entries())
    if (name.starts_with(kModelPrefix)) shapes[name.substr(kModelPrefix.size())] = entry.shape;
  return shapes;
}

std::map<std::string, Shape> ExportedWeights::shapes() const {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, source] : sources_) shapes[name] = entry(name).shape;
  return shapes;
}

void ExportedWeights::repeat(const std::string& name, const std::string& other) {
  const auto source = sources_.find(name);
  if (source != sources_.end()) sources_.emplace(other, source->second);
}

at::Tensor ExportedWeights::read(const std::string& source) const {
  const TensorSource::Entry& entry = tensors_.at(source);
  at::Tensor whole = at::empty(entry.shape, entry.dtype);
  tensors_.read(source, whole_region(entry.shape), whole);
  return whole;
}

at::Tensor ExportedWeights::merged(const std::string& name) const {
  const at::Tensor weight = read(sources_.at(name));
  const auto adapter = adapters_.find(name);
  if (adapter == adapters_.end()) return weight;
  const at::Tensor a = read(adapter->second.a).to(at::kFloat), b = read(adapter->second.b).to(at::kFloat);
  const at::Tensor change = at::matmul(b, a) * lora_->scaling();
  return (weight.to(at::kFloat) + (fan_in_fan_out_ ? change.t() : change)).to(weight.scalar_type());
}

TensorSource::Entries ExportedWeights::entries_of(const Sources& sources) const {
  TensorSource::Entries entries;
  for (const auto& [name, source] : sources) entries[name] = tensors_.at(source);
  return entries;
}

std::size_t ExportedWeights::write_adapter(Disk& disk, const std::string& folder) const {
  if (!lora_) throw UserError({folder}, "the run has no LoRA, whose adapters PEFT reads");
  const NamedShapes shapes = model_shapes();
  Sources adapters;
  std::set<std::string> saved;
  for (const auto& [name, shape] : shapes) {
    if (!is_of_adapter(name) && !is_of_saved_module(*lora_, name)) continue;
    adapters[kAdapterPrefix + name] = source_of(name);
    if (!is_of_adapter(name)) saved.insert(name);
  }
  disk.make_folders(folder);
  write_json_object(disk, folder + '/' + kAdapterConfig,
                    adapter_config(lora_table_, model_section(), shapes, saved));
  write_safetensors_set(disk, folder + '/' + kAdapterWeights, entries_of(adapters), UINT64_MAX,
                        [&](const std::string& name) { return read(adapters.at(name)); });
  return adapters.size();
}

}  // namespace tutti

#include "commands/exported_weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "algorithms/surgery/lora.h"
#include "io/formats/json_setting.h"
#include "io/formats/safetensors.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr const char* kAverage = "algorithms/EMA";
constexpr const char* kWeight = ".weight";
constexpr const char* kA = ".lora_A.weight";
constexpr const char* kB = ".lora_B.weight";

std::string without_end(const std::string& name, std::string_view end) {
  return name.substr(0, name.size() - end.size());
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

std::vector<std::string> sorted(const std::set<std::string>& names) { return {names.begin(), names.end()}; }

}  // namespace

ExportedWeights::ExportedWeights(const Disk& disk, const Checkpoint& checkpoint, bool trained)
    : state_(RunState::from_json(checkpoint.manifest.state)), tensors_(disk, checkpoint) {
  const auto average = state_.listeners.find(kAverage);
  averaged_ = !trained && average != state_.listeners.end() && !average->second.empty();
  read_lora(checkpoint);
  for (const auto& [name, entry] : tensors_.entries())
    if (name.starts_with(kModelPrefix)) add(checkpoint, name.substr(kModelPrefix.size()));
  if (sources_.empty()) throw UserError({checkpoint.folder}, "it holds no weights");
  fan_in_fan_out_ = find_fan_in_fan_out(checkpoint);
}

void ExportedWeights::read_lora(const Checkpoint& checkpoint) {
  for (const RequiredAlgorithm& one : state_.required_algorithms) {
    if (one.name != Lora::kLora) continue;
    if (one.settings.empty())
      throw UserError({checkpoint.folder}, "LoRA is of a program; its r and alpha are not known");
    const Setting written = parse_recipe(one.settings, checkpoint.folder);
    lora_ = LoraOptions::kind().read(written.at("algorithms").array().at(0));
  }
}

std::string ExportedWeights::exported_name(const std::string& name) const {
  const auto before = state_.names_before_surgery.find(name);
  return before == state_.names_before_surgery.end() ? name : before->second;
}

std::string ExportedWeights::source_of(const std::string& name) const {
  const std::string average = std::string(kAverage) + '/' + name;
  return averaged_ && tensors_.contains(average) ? average : std::string(kModelPrefix) + name;
}

void ExportedWeights::add(const Checkpoint& checkpoint, const std::string& name) {
  if (lora_ && is_of_adapter(name)) {
    if (!name.ends_with(kA)) return;
    const std::string module = without_end(name, kA);
    adapters_[exported_name(module + kWeight)] = {module, source_of(name), source_of(module + kB)};
    return;
  }
  const std::string exported = exported_name(name);
  if (!sources_.emplace(exported, source_of(name)).second)
    throw UserError({checkpoint.folder}, "two tensors would have the name '" + exported + "'");
}

// True if the adapters' layers have weights [in, out]. Square ones do not show this.
bool ExportedWeights::find_fan_in_fan_out(const Checkpoint& checkpoint) const {
  for (const auto& [name, adapter] : adapters_) {
    const int64_t in = tensors_.at(adapter.a).shape.at(1), out = tensors_.at(adapter.b).shape.at(0);
    if (in != out && sources_.contains(name)) return entry(name).shape.at(0) == in;
  }
  const Setting recipe = parse_recipe(state_.recipe, checkpoint.folder);
  return recipe.at("model").at("kind").text() == "gpt";
}

std::map<std::string, Shape> ExportedWeights::shapes() const {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, source] : sources_) shapes[name] = entry(name).shape;
  return shapes;
}

void ExportedWeights::repeat(const std::string& name, const std::string& other) {
  const auto found = sources_.find(name);
  if (found != sources_.end()) sources_.emplace(other, found->second);
}

at::Tensor ExportedWeights::read(const std::string& source) const {
  const TensorSource::Entry& entry = tensors_.at(source);
  at::Tensor whole = at::empty(entry.shape, entry.dtype);
  tensors_.read(source, {0, entry.shape.empty() ? 1 : whole.size(0)}, whole);
  return whole;
}

at::Tensor ExportedWeights::merged(const std::string& name, const at::Tensor& weight) const {
  const auto found = adapters_.find(name);
  if (found == adapters_.end()) return weight;
  const at::Tensor a = read(found->second.a).to(at::kFloat), b = read(found->second.b).to(at::kFloat);
  const at::Tensor change = at::matmul(b, a) * lora_->scaling();
  return (weight.to(at::kFloat) + (fan_in_fan_out_ ? change.t() : change)).to(weight.scalar_type());
}

void ExportedWeights::write(Disk& disk, const std::string& path, const Sources& sources, bool merges) const {
  const std::string fresh = path + ".new";
  Safetensors layout{{}, {{"format", "pt"}}};
  for (const auto& [name, source] : sources)
    layout.tensors[name] =
        at::empty(tensors_.at(source).shape, at::TensorOptions(at::kMeta).dtype(tensors_.at(source).dtype));
  SafetensorsFile file(disk, fresh, layout);
  for (const auto& [name, source] : sources)
    file.put(name, merges ? merged(name, read(source)) : read(source));
  file.finish();
  disk.rename(fresh, path);
}

void ExportedWeights::write(Disk& disk, const std::string& path) const { write(disk, path, sources_, true); }

std::size_t ExportedWeights::write_adapter(Disk& disk, const std::string& folder) const {
  if (!lora_) throw UserError({folder}, "the run has no LoRA, whose adapters PEFT reads");
  Sources adapters, saved;
  for (const auto& [name, adapter] : adapters_) {
    adapters[kAdapterPrefix + adapter.module + kA] = adapter.a;
    adapters[kAdapterPrefix + adapter.module + kB] = adapter.b;
  }
  for (const auto& [name, source] : sources_)
    if (is_of_saved_module(*lora_, name)) saved[name] = source;
  disk.make_folders(folder);
  write_json_object(disk, folder + '/' + kAdapterConfig, adapter_config(*lora_, sites(saved)));
  for (const auto& [name, source] : saved) adapters[kAdapterPrefix + name] = source;
  write(disk, folder + '/' + kAdapterWeights, adapters, false);
  return adapters.size();
}

// Targets are named by the ends of their names, unless other matrices have such names too.
AdapterSites ExportedWeights::sites(const Sources& saved) const {
  std::set<std::string> modules, ends, saved_modules;
  for (const auto& [name, adapter] : adapters_) {
    modules.insert(adapter.module);
    ends.insert(last_part(adapter.module));
  }
  const bool has_others = std::ranges::any_of(sources_, [&](const auto& one) {
    return one.first.ends_with(kWeight) && !adapters_.contains(one.first) &&
           ends.contains(last_part(without_end(one.first, kWeight)));
  });
  for (const auto& [name, source] : saved) saved_modules.insert(name.substr(0, name.rfind('.')));
  AdapterSites sites{.target_modules = sorted(has_others ? modules : ends),
                     .modules_to_save = sorted(saved_modules),
                     .fan_in_fan_out = fan_in_fan_out_};
  const Setting recipe = parse_recipe(state_.recipe, "");
  const Setting& model = recipe.at("model");
  const std::string& kind = model.at("kind").text();
  if (kind == "gpt" || kind == "llama") sites.task_type = "CAUSAL_LM";
  if (model.has("weights") && std::filesystem::is_directory(model.at("weights").text()))
    sites.base_model = model.at("weights").text();
  return sites;
}

}  // namespace tutti

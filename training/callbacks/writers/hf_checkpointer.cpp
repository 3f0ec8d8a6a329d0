#include "training/callbacks/writers/hf_checkpointer.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "data/dataset.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/tokenizer_files.h"
#include "io/json/json_setting.h"
#include "models/hub/adapter.h"
#include "models/hub/config.h"
#include "models/hub/model.h"
#include "training/callbacks/factory.h"
#include "training/callbacks/writers/file_names.h"
#include "training/callbacks/writers/weights_file.h"
#include "training/state.h"

namespace tutti {
namespace {

NamedShapes shapes_in(const State& state) {
  NamedShapes shapes;
  for (const auto& named : state.parameters) shapes[named.name] = named.parameter->tensor.sizes().vec();
  for (const auto& named : state.buffers) shapes[named.name] = named.buffer->tensor.sizes().vec();
  return shapes;
}

NamedShapes without_adapters(NamedShapes shapes) {
  std::erase_if(shapes, [](const auto& one) { return is_of_adapter(one.first); });
  return shapes;
}

const RequiredAlgorithm* lora_of(const State& state) {
  const auto& all = state.required_algorithms;
  const auto lora = std::ranges::find(all, kLora, &RequiredAlgorithm::name);
  return lora == all.end() ? nullptr : &*lora;
}

// Those that are trained beside the adapters.
std::set<std::string> saved_parameters(const State& state) {
  std::set<std::string> names;
  for (const auto& named : state.parameters)
    if (named.parameter->trained && !is_of_adapter(named.name)) names.insert(named.name);
  return names;
}

std::optional<at::ScalarType> dtype_of(const std::string& precision) {
  if (precision == "float32") return at::kFloat;
  return precision == "float16" ? at::kHalf : at::kBFloat16;
}

}  // namespace

HfCheckpointer::HfCheckpointer(Disk& disk, const HfCheckpointerOptions& options, Setting key, Setting model)
    : PeriodicCallback(options.save_interval),
      disk_(disk),
      options_(options),
      key_(std::move(key)),
      model_(std::move(model)) {}

void HfCheckpointer::require(const State& state) const {
  try {
    hub_folder(model_, hub_width(shapes_in(state)));
  } catch (const UserError& error) {
    key_.at("kind").fail(error);
  }
  for (const RequiredAlgorithm& algorithm : state.required_algorithms) {
    if (algorithm.name != kLora)
      key_.at("kind").fail("the model is changed by " + algorithm.name +
                           ", which the hub's models do not have");
    if (algorithm.settings.empty())
      key_.at("kind").fail("LoRA is of a program; its r and alpha are not known");
  }
  require_hub_model(key_.at("kind"), model_, without_adapters(shapes_in(state)));
}

void HfCheckpointer::interval_passed(const State& state) {
  if (std::exchange(last_batch_, state.timestamp.batch) == state.timestamp.batch) return;
  const std::string folder = file_name(state, options_.path());
  const auto dtype = dtype_of(options_.precision);
  if (lora_of(state)) {
    const auto saved = saved_parameters(state);
    write_weights_file(state, disk_, folder + '/' + kAdapterWeights, dtype, [&](const std::string& name) {
      return is_of_adapter(name) || saved.contains(name) ? kAdapterPrefix + name : "";
    });
  } else {
    const HubFolder hub = hub_folder(model_, hub_width(shapes_in(state)));
    write_weights_file(state, disk_, folder + '/' + hub.weights, dtype);
  }
  if (state.topology.rank == 0) warn_if_unwritten([&] { write_configs(state, folder); });
}

void HfCheckpointer::write_configs(const State& state, const std::string& folder) const {
  disk_.make_folders(folder);
  const NamedShapes shapes = shapes_in(state);
  if (const RequiredAlgorithm* lora = lora_of(state)) {
    write_json_object(disk_, folder + '/' + kAdapterConfig,
                      adapter_config(lora->section(kLora), model_, shapes, saved_parameters(state)));
  } else {
    HubFolder hub = hub_folder(model_, hub_width(shapes));
    for (auto& [path, config] : hub.configs)
      if (options_.precision != "float32" && path.ends_with("config.json"))
        config.table().emplace_back("torch_dtype", Setting(options_.precision, "torch_dtype", {}));
    hub.write_configs(disk_, folder);
  }
  if (const auto tokenizer = state.dataset ? state.dataset->tokenizer() : nullptr)
    copy_tokenizer_files(disk_, tokenizer->path(), folder);
}

CallbackPtr HfCheckpointerOptions::make(const Setting& section,
                                        const CallbackEnvironment& environment) const {
  return std::make_shared<HfCheckpointer>(environment.disk, *this, section, environment.model);
}

}  // namespace tutti

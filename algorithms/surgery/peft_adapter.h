#pragma once

#include <string>
#include <vector>

#include "algorithms/surgery/options.h"
#include "recipe/setting.h"

namespace tutti {

struct State;

// A LoRA adapter in PEFT's layout: a folder with adapter_config.json and adapter_model.safetensors, in which
// a parameter has its name in the model behind kAdapterPrefix.
inline constexpr const char* kAdapterPrefix = "base_model.model.";
inline constexpr const char* kAdapterConfig = "adapter_config.json";
inline constexpr const char* kAdapterWeights = "adapter_model.safetensors";

// Reads the folder of `options` into the model's adapters and modules_to_save; a rank with a share its rows.
// Throws UserError if the folder's adapter is another than the options', or is for other layers.
void read_adapter(State& state, const LoraOptions& options);

// What an adapter_config.json says beside the options.
struct AdapterSites {
  std::vector<std::string> target_modules, modules_to_save;  // names of layers, or their ends
  bool fan_in_fan_out = false;                               // of Conv1D
  std::string task_type, base_model;                         // "" = null
};
Setting adapter_config(const LoraOptions& options, const AdapterSites& sites);

}  // namespace tutti

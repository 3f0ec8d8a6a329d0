#pragma once

#include <set>
#include <string>
#include <string_view>

#include "models/hub/model.h"
#include "recipe/setting.h"

// LoRA adapters in PEFT's layout: a folder with adapter_config.json and adapter_model.safetensors, in which a
// parameter has its name in the model behind kAdapterPrefix.
namespace tutti {

inline constexpr const char* kLora = "LoRA";  // the algorithm
inline constexpr const char* kAdapterPrefix = "base_model.model.";
inline constexpr const char* kAdapterConfig = "adapter_config.json";
inline constexpr const char* kAdapterWeights = "adapter_model.safetensors";

// Ends of the names of a layer's parameters: its own, and its adapter's.
inline constexpr const char* kWeightEnd = ".weight";
inline constexpr const char *kLoraAEnd = ".lora_A.weight", *kLoraBEnd = ".lora_B.weight";

std::string without_end(const std::string& name, std::string_view end);  // which it has

// True for the name of an adapter's parameter: "model.layers.0.self_attn.q_proj.lora_A.weight".
bool is_of_adapter(const std::string& name);

// True if the layers with adapters have weights [in, out], as of Conv1D. Square weights do not show the
// order: where all are square, a `model` (the resolved section) of kind gpt has such weights.
bool has_fan_in_fan_out(const NamedShapes& tensors, const Setting& model);

// An adapter_config.json of a model with these `tensors`, of which `saved` are trained as a whole. `lora` is
// the resolved table of [[algorithms]], and `model` the resolved section.
Setting adapter_config(const Setting& lora, const Setting& model, const NamedShapes& tensors,
                       const std::set<std::string>& saved);

}  // namespace tutti

#pragma once

#include <string>

#include "recipe/setting.h"

// Configurations of transformers' Llama, Mistral, Qwen2 and Qwen3, and the zoo's kind llama. Free of
// libtorch.
namespace tutti {

// True for the model_type of a config.json of which the zoo's llama is.
bool is_of_llama(const std::string& model_type);

// As zoo_section and hub_folder (models/hub/config.h).
Setting::Table llama_section(const Setting& config, const Setting& asked);
Setting::Table llama_config(const Setting& model);

}  // namespace tutti

#pragma once

#include <filesystem>
#include <string>

#include "recipe/setting.h"

namespace tutti {

// True for a folder of Hugging Face's transformers, or of a model or pipeline of diffusers.
bool is_hub_folder(const std::string& path);

// The section of [model], not resolved, unchanged, except with kind = "hf": then the zoo's kind, the sizes of
// the folder's config.json, and the folder's weights. `folder`: base of relative paths. Free of libtorch.
// Throws UserError.
Setting zoo_model(Setting section, const std::filesystem::path& folder);

}  // namespace tutti

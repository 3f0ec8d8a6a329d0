#pragma once

#include <filesystem>
#include <string>

#include "recipe/setting.h"

namespace tutti {

// True for a folder of Hugging Face's transformers, or of a model or pipeline of diffusers.
bool is_hub_folder(const std::string& path);

// The section of [model], not resolved, as it stands, but for one with kind = "hf": of that the zoo's kind,
// the sizes that the folder's config.json says, and as weights the folder's. `folder`: base of relative
// paths. Free of libtorch. Throws UserError.
Setting zoo_model(Setting section, const std::filesystem::path& folder);

}  // namespace tutti

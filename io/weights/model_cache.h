#pragma once

#include <filesystem>
#include <string>

#include "recipe/setting.h"

// Models that other programs keep on this machine, by the names that their users know. Nothing is fetched.
// Free of libtorch.
namespace tutti {

enum class ModelCache {
  kHuggingFace,  // folders: "bert-base-uncased", "timm/resnet18.a1_in1k"
  kAny,          // of Hugging Face, and files of torch hub: "resnet18" is resnet18-f37072fd.pth
};

// The absolute path of the cached model that a text names; a text that is a path stays as it is: one of an
// existing file, with a file's ending, or with other characters than a name. `folder`: base of relative
// paths. Caches are found as torch and huggingface_hub find them (TORCH_HOME, HF_HUB_CACHE, HF_HOME,
// XDG_CACHE_HOME); a folder of Hugging Face is the revision "main", or else the only revision. Throws
// UserError with the key: several models have the name, or none.
Setting cached_model(Setting name, const std::filesystem::path& folder, ModelCache cache);

}  // namespace tutti

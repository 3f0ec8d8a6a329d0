#include "io/weights/model_cache.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "recipe/catalog.h"
#include "runtime/nearest_name.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
constexpr std::string_view kHexDigits = "0123456789abcdef";

struct CachedModel {
  std::string name;
  fs::path path;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The folder of the first variable that is set, with what is below it; else below the user's caches.
struct CacheFolder {
  const char* variable;
  const char* below;
};
fs::path cache_folder(std::initializer_list<CacheFolder> choices, const char* below_caches) {
  for (const auto& [name, below] : choices)
    if (const std::string value = variable(name); !value.empty()) return fs::path(value) / below;
  const std::string caches = variable("XDG_CACHE_HOME");
  return (caches.empty() ? fs::path(variable("HOME")) / ".cache" : fs::path(caches)) / below_caches;
}

fs::path torch_folder() { return cache_folder({{"TORCH_HOME", "hub/checkpoints"}}, "torch/hub/checkpoints"); }

fs::path hugging_face_folder() {
  return cache_folder({{"HF_HUB_CACHE", ""}, {"HUGGINGFACE_HUB_CACHE", ""}, {"HF_HOME", "hub"}},
                      "huggingface/hub");
}

bool consists_of(std::string_view text, std::string_view letters) {
  return !text.empty() && text.find_first_not_of(letters) == text.npos;
}

// "resnet18" or "google/vit-base": no path that a user would write for a file of this machine.
bool is_model_name(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string owner = text.substr(0, slash), name = slash == text.npos ? owner : text.substr(slash + 1);
  if (!consists_of(owner, kLetters) || !consists_of(name, kLetters) || owner[0] == '.' || name[0] == '.')
    return false;
  return std::ranges::none_of(
      std::initializer_list<const char*>{".safetensors", ".h5", ".hdf5", ".pt", ".pth", ".bin", ".ckpt",
                                         ".json", ".model", ".pt2", ".ts"},
      [&](const char* ending) { return text.ends_with(ending); });
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code unreadable;
  for (fs::directory_iterator i(folder, unreadable), end; !unreadable && i != end; i.increment(unreadable))
    entries.push_back(i->path());
  std::ranges::sort(entries);
  return entries;
}

// Torch hub's names of files end in the first digits of a hash: "resnet18-f37072fd.pth".
std::vector<CachedModel> torch_models() {
  std::vector<CachedModel> models;
  for (const fs::path& path : entries_of(torch_folder())) {
    const std::string stem = path.stem().string(), ending = path.extension().string();
    const std::size_t dash = stem.rfind('-');
    if (ending != ".pth" && ending != ".pt") continue;
    const bool hashed = dash != stem.npos && consists_of(stem.substr(dash + 1), kHexDigits);
    models.push_back({hashed ? stem.substr(0, dash) : stem, path});
  }
  return models;
}

// "" if none is chosen: several revisions, and none of them "main".
fs::path snapshot_of(const fs::path& repository) {
  std::string main;
  std::ifstream(repository / "refs/main") >> main;
  if (consists_of(main, kHexDigits) && fs::is_directory(repository / "snapshots" / main))
    return repository / "snapshots" / main;
  const auto revisions = entries_of(repository / "snapshots");
  return revisions.size() == 1 ? revisions[0] : "";
}

// Folders are "models--bert-base-uncased", "models--google--vit-base".
std::vector<CachedModel> hugging_face_models() {
  constexpr std::string_view kPrefix = "models--";
  std::vector<CachedModel> models;
  for (const fs::path& repository : entries_of(hugging_face_folder())) {
    std::string name = repository.filename().string();
    if (!name.starts_with(kPrefix)) continue;
    name.erase(0, kPrefix.size());
    if (const std::size_t slash = name.find("--"); slash != name.npos) name.replace(slash, 2, "/");
    if (const fs::path snapshot = snapshot_of(repository); !snapshot.empty())
      models.push_back({name, snapshot});
  }
  return models;
}

[[noreturn]] void fail_unknown(const Setting& name, ModelCache cache,
                               const std::vector<CachedModel>& models) {
  std::string places = hugging_face_folder().string();
  if (cache == ModelCache::kAny) places = torch_folder().string() + " or " + places;
  std::vector<std::string> names;
  for (const CachedModel& model : models) names.push_back(model.name);
  const std::string nearest = nearest_name(name.text(), names);
  const bool may_be_torch = cache == ModelCache::kAny && name.text().find('/') == std::string::npos;
  if (cache == ModelCache::kAny && name.text().starts_with("IMAGENET1K_"))
    name.fail(
        "torchvision's name of the weights of each of its models; expected the name of a model, such as "
        "weights = \"resnet18\", which stands for the file in torchvision's cache");
  name.fail("there is no such file, and no model of this name in " + places +
            (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?") +
            "; where there is a network, `hf download " + name.text() + "`" +
            (may_be_torch ? ", or torchvision.models with weights=\"DEFAULT\" in Python," : "") +
            " fetches a model; then give its name again, or the path of its file");
}

}  // namespace

Setting cached_model(Setting name, const fs::path& folder, ModelCache cache) {
  std::error_code unreadable;
  if (!name.is_text() || !is_model_name(name.text()) || fs::exists(folder / name.text(), unreadable))
    return name;
  auto models = hugging_face_models();
  if (cache == ModelCache::kAny) std::ranges::copy(torch_models(), std::back_inserter(models));
  std::vector<CachedModel> named;
  std::ranges::copy_if(models, std::back_inserter(named), [&](const CachedModel& model) {
    return model.name == name.text() || model.path.stem() == name.text();
  });
  if (named.empty()) fail_unknown(name, cache, models);
  if (named.size() > 1) {
    std::vector<std::string> paths;
    for (const CachedModel& model : named) paths.push_back(model.path.string());
    name.fail("several models have this name; give the path of one: " + joined(paths));
  }
  name.written = name.text();
  name.value = fs::absolute(named[0].path).lexically_normal().string();
  return name;
}

}  // namespace tutti

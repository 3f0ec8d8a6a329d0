#include "io/foreign/foreign_checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "io/foreign/foreign_content.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr const char* kDistributed = "/.metadata";
constexpr std::size_t kMostKeysShown = 12;
constexpr const char* kFirstRank = "__0_";  // the beginning of names of files
constexpr const char* kFilesOfHuggingFace[] = {"/model.safetensors", "/model.safetensors.index.json",
                                               "/pytorch_model.bin", "/pytorch_model.bin.index.json"};

bool is_folder_of_hugging_face(const Disk& disk, const std::string& path) {
  return std::ranges::any_of(kFilesOfHuggingFace, [&](const char* name) { return disk.exists(path + name); });
}

// Pieces by file.
class ForeignFiles {
 public:
  void add(const std::string& name, const TreeTensor& tensor) {
    for (const TreeTensor::Part& part : tensor.parts) {
      const std::string path = std::filesystem::absolute(part.file).lexically_normal();
      RankFile& file = files_[path];
      file.pieces.push_back(
          {name, tensor.shape, part.offset, part.extent, tensor.dtype, {}, part.at, part.strides});
    }
  }

  std::vector<RankFile> take() {
    std::vector<RankFile> all;
    for (auto& [path, file] : files_) {
      file.file = path;
      file.bytes = std::filesystem::file_size(path);
      all.push_back(std::move(file));
    }
    return all;
  }

 private:
  std::map<std::string, RankFile> files_;
};

[[noreturn]] void fail_without_weights(const std::string& path, const std::string& keys) {
  throw UserError({path},
                  "no weights are in the file: looked for \"state\" with \"model\" (Composer), "
                  "\"state_dict\" (Lightning), "
                  "and \"model\", \"model_state_dict\", \"module\" or tensors at the root (PyTorch)" +
                      (keys.empty() ? "" : "; its keys are " + keys));
}

// The first keys of a dict.
std::string keys_of(const ObjectTree& saved) {
  std::string text;
  for (std::size_t i = 0; saved.dict() && i < saved.dict()->size(); ++i) {
    text += i == 0 ? "" : ", ";
    if (i == kMostKeysShown) return text + "...";
    text += "'" + shown((*saved.dict())[i].first) + "'";
  }
  return text;
}

ForeignContent content_of(const ObjectTree& saved, const std::string& path) {
  ForeignContent content = is_composers(saved)    ? composer_content(saved)
                           : is_lightnings(saved) ? lightning_content(saved)
                                                  : plain_content(saved);
  if (content.weights.empty()) fail_without_weights(path, keys_of(saved));
  return content;
}

bool is_of_first_rank(const TreeTensor& tensor) {
  return std::ranges::all_of(tensor.parts, [](const TreeTensor::Part& part) {
    return std::filesystem::path(part.file).filename().string().starts_with(kFirstRank);
  });
}

// What several processes saved is not in the model's order.
ForeignContent distributed_content(const std::string& folder) {
  ForeignContent content = content_of(read_distributed_objects(folder), folder);
  if (!std::ranges::all_of(content.weights,
                           [](const auto& weight) { return is_of_first_rank(weight.second); }))
    content.state.imported.weights.clear();
  return content;
}

ForeignContent content_at(const Disk& disk, const std::string& path) {
  if (disk.exists(path + kDistributed)) return distributed_content(path);
  if (is_folder_of_hugging_face(disk, path)) return hugging_face_content(path);
  if (path.ends_with(".safetensors")) return safetensors_content(path);
  for (const char* weights : {".h5", ".hdf5", ".index.json"})
    if (path.ends_with(weights))
      throw UserError({path}, "the file has weights alone, which [model] weights = \"" + path + "\" reads");
  return content_of(read_torch_objects(path), path);
}

}  // namespace

bool is_foreign_checkpoint(const Disk& disk, const std::string& path) {
  std::error_code error;
  if (disk.exists(path + "/manifest.json")) return false;
  return std::filesystem::is_regular_file(path, error) || disk.exists(path + kDistributed) ||
         is_folder_of_hugging_face(disk, path);
}

Checkpoint foreign_checkpoint(const Disk& disk, const std::string& path) {
  ForeignContent content = content_at(disk, path);
  if (content.weights.empty()) fail_without_weights(path, "");
  ForeignFiles files;
  for (const auto& [name, tensor] : content.weights) files.add(std::string(kModelPrefix) + name, tensor);
  for (const auto& [name, tensor] : content.averages) files.add("algorithms/" + name, tensor);
  for (const auto& moment : content.moments)
    files.add(std::string(kOptimizersPrefix) + moment.parameter + '/' + moment.name, moment.tensor);
  RunState& state = content.state;
  state.imported.path = std::filesystem::absolute(path).lexically_normal();
  state.last_step.before = state.time;
  state.last_step.before.batch = std::max<int64_t>(0, state.time.batch - 1);
  return {path, {files.take(), state.to_json()}};
}

}  // namespace tutti

#include "io/foreign/foreign_checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "io/foreign/foreign_content.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr const char* kDistributed = "/.metadata";
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

ForeignContent content_of(const ObjectTree& saved) {
  if (is_composers(saved)) return composer_content(saved);
  if (is_lightnings(saved)) return lightning_content(saved);
  return plain_content(saved);
}

ForeignContent content_at(const Disk& disk, const std::string& path) {
  if (disk.exists(path + kDistributed)) return content_of(read_distributed_objects(path));
  if (is_folder_of_hugging_face(disk, path)) return hugging_face_content(path);
  return content_of(read_torch_objects(path));
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
  if (content.weights.empty())
    throw UserError({path},
                    "no weights are in the file: looked for \"state\" with \"model\" (Composer), "
                    "\"state_dict\" (Lightning), "
                    "and \"model\", \"model_state_dict\", \"module\" or tensors at the root (PyTorch)");
  ForeignFiles files;
  for (const auto& [name, tensor] : content.weights) files.add(std::string(kModelPrefix) + name, tensor);
  for (const auto& [name, tensor] : content.averages) files.add("algorithms/EMA/" + name, tensor);
  for (const auto& moment : content.moments)
    files.add(std::string(kOptimizersPrefix) + moment.parameter + '/' + moment.name, moment.tensor);
  RunState& state = content.state;
  state.imported.path = std::filesystem::absolute(path).lexically_normal();
  state.last_step.before = state.time;
  state.last_step.before.batch = std::max<int64_t>(0, state.time.batch - 1);
  return {path, {files.take(), state.to_json()}};
}

}  // namespace tutti

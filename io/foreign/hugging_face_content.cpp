#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "io/foreign/foreign_content.h"
#include "io/formats/safetensors.h"
#include "io/json/json_text.h"
#include "io/weights/weights_set.h"
#include "runtime/disk.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr uint64_t kMostStateBytes = uint64_t{256} << 20;

void add_safetensors(ForeignContent& content, const std::string& path) {
  const auto header = read_safetensors_header(path);
  for (const auto& [name, entry] : header.tensors) {
    TreeTensor tensor{entry.dtype, entry.shape, {}};
    tensor.parts.push_back({path, entry.at, Shape(entry.shape.size(), 0), entry.shape, {}});
    content.weights.emplace_back(name, std::move(tensor));
    content.state.imported.weights.push_back(name);
  }
}

void add_file(ForeignContent& content, const std::string& path) {
  if (path.ends_with(".safetensors")) return add_safetensors(content, path);
  const ObjectTree saved = read_torch_objects(path);
  add_weights(content, &saved);
}

void add_files(ForeignContent& content, const Disk& disk, const std::string& folder) {
  for (const std::string name : {"/model.safetensors", "/pytorch_model.bin"}) {
    const std::string path = folder + name, index = path + ".index.json";
    if (disk.exists(path)) return add_file(content, path);
    if (!disk.exists(index)) continue;
    for (const auto& [file, names] : read_weights_index(disk, index)) add_file(content, folder + '/' + file);
    return;
  }
}

// The order in which the model has its parameters is not that of a safetensors file.
void forget_order(ForeignContent& content, const Disk& disk, const std::string& folder) {
  if (disk.exists(folder + "/pytorch_model.bin")) return;
  content.state.imported.weights.clear();
}

void add_time(ForeignContent& content, const Disk& disk, const std::string& path) try {
  const auto json = parse_json<nlohmann::json>(disk.read_text(path, kMostStateBytes));
  content.state.time.batch = integer_member(json, "global_step");
  content.state.time.batch_in_epoch = -1;
} catch (const nlohmann::json::exception& error) {
  throw UserError({path}, json_problem(error));
}

}  // namespace

ForeignContent safetensors_content(const std::string& path) {
  ForeignContent content;
  content.state.imported.program = "safetensors";
  add_safetensors(content, path);
  content.state.imported.weights.clear();  // not in the model's order
  return content;
}

ForeignContent hugging_face_content(const std::string& folder) {
  const PosixDisk disk;
  ForeignContent content;
  content.state.imported.program = "transformers";
  add_files(content, disk, folder);
  forget_order(content, disk, folder);
  if (const std::string path = folder + "/optimizer.pt"; disk.exists(path))
    add_optimizer(content, read_torch_objects(path));
  if (const std::string path = folder + "/trainer_state.json"; disk.exists(path))
    add_time(content, disk, path);
  if (disk.exists(folder + "/rng_state.pth")) leave_generators(content);
  return content;
}

}  // namespace tutti

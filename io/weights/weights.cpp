#include "io/weights/weights.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/formats/safetensors.h"
#include "io/hdf5/hdf5.h"
#include "io/weights/torch_file.h"
#include "io/weights/weights_set.h"
#include "runtime/error.h"

namespace tutti {
namespace {

class SafetensorsWeights final : public TensorSource {
 public:
  SafetensorsWeights(const Disk& disk, const std::string& path)
      : disk_(disk), path_(path), header_(read_safetensors_header(path)) {
    for (const auto& [name, entry] : header_.tensors) entries_[name] = {entry.shape, entry.dtype};
  }

  void read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const override {
    const SafetensorsHeader::Entry& entry = header_.tensors.at(name);
    disk_.read_into(path_, entry.at + first * c10::elementSize(entry.dtype), to);
  }

 private:
  const Disk& disk_;
  std::string path_;
  SafetensorsHeader header_;
};

// checkpoint.h5 has each parameter under model/ and, as a link, at the root; either may be read.
class Hdf5Weights final : public TensorSource {
 public:
  Hdf5Weights(const Disk& disk, const std::string& path) : disk_(disk), file_(path) {
    const auto& all = file_.datasets();
    const bool grouped =
        std::ranges::any_of(all, [](const auto& entry) { return entry.path.starts_with(kModelPrefix); });
    for (const Hdf5Entry& entry : all) {
      if (grouped && !entry.path.starts_with(kModelPrefix)) continue;
      const std::string name = entry.path.substr(grouped ? kModelPrefix.size() : 0);
      entries_[name] = {entry.shape, entry.dtype};
      datasets_[name] = &entry;
    }
  }

  // Through libhdf5 only where its datasets are not plain: virtual, in chunks, compressed.
  void read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const override {
    const Hdf5Entry& dataset = *datasets_.at(name);
    const auto item = static_cast<int64_t>(c10::elementSize(dataset.dtype));
    if (dataset.file_offset) return disk_.read_into(file_.path(), *dataset.file_offset + first * item, to);
    if (dataset.shape.empty()) return copy(file_.read(dataset.path), 0, first, to);
    const int64_t row = c10::multiply_integers(dataset.shape.begin() + 1, dataset.shape.end());
    const int64_t last = first + static_cast<int64_t>(to.size()) / item, end = (last + row - 1) / row;
    const int64_t rows = std::max<int64_t>(1, static_cast<int64_t>(kBufferBytes) / (row * item));
    for (int64_t i = first / row; i < end; i += rows)
      copy(file_.read_range(dataset.path, i, std::min(rows, end - i)), i * row, first, to);
  }

 private:
  // Copies what the numbers from `place` on have of those from `first` on.
  static void copy(const at::Tensor& numbers, int64_t place, int64_t first, std::span<std::byte> to) {
    const auto item = static_cast<int64_t>(numbers.element_size());
    const int64_t last = first + static_cast<int64_t>(to.size()) / item;
    const int64_t begin = std::max(first, place), end = std::min(last, place + numbers.numel());
    std::memcpy(to.data() + (begin - first) * item,
                static_cast<const std::byte*>(numbers.const_data_ptr()) + (begin - place) * item,
                (end - begin) * item);
  }

  const Disk& disk_;
  Hdf5File file_;
  std::map<std::string, const Hdf5Entry*> datasets_;
};

std::unique_ptr<TensorSource> open_saved(const Disk& disk, const std::string& folder,
                                         const AxisRank& rank) try {
  Checkpoint checkpoint = open_checkpoint(disk, folder);
  verify_files(disk, checkpoint, rank);
  return std::make_unique<CheckpointTensors>(disk, std::move(checkpoint), kModelPrefix);
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

bool has_extension(const std::string& path, std::initializer_list<const char*> extensions) {
  return std::ranges::any_of(extensions, [&](const char* one) { return path.ends_with(one); });
}

std::unique_ptr<TensorSource> open_file(const Disk& disk, const std::string& path) {
  if (!disk.exists(path)) throw UserError({path}, "there is no such file with weights");
  if (has_extension(path, {".safetensors"})) return std::make_unique<SafetensorsWeights>(disk, path);
  if (has_extension(path, {".h5", ".hdf5"})) return std::make_unique<Hdf5Weights>(disk, path);
  if (has_extension(path, {".pt", ".pth", ".bin", ".ckpt"})) return open_torch_file(disk, path);
  throw UserError(
      {path},
      "expected weights as .safetensors, .h5, .pt, .pth, .bin or .ckpt, an .index.json of such files, "
      "a folder of Hugging Face, or a checkpoint's folder");
}

std::unique_ptr<TensorSource> open_set(const Disk& disk, const std::string& index) {
  auto set = std::make_unique<WeightsSet>();
  for (const auto& [file, names] : read_weights_index(disk, index)) {
    const std::string path = index.substr(0, index.rfind('/') + 1) + file;
    auto weights = open_file(disk, path);
    for (const std::string& name : names)
      if (!weights->contains(name))
        throw UserError({path}, "it holds no tensor '" + name + "', which " + index + " expects there");
    set->add(std::move(weights), names);
  }
  return set;
}

// The first of the names under which Hugging Face's programs save weights.
std::unique_ptr<TensorSource> open_folder(const Disk& disk, const std::string& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json", "diffusion_pytorch_model.safetensors",
                           "diffusion_pytorch_model.safetensors.index.json", "diffusion_pytorch_model.bin"})
    if (const std::string path = folder + "/" + name; disk.exists(path)) return open_weights(disk, path);
  throw UserError(
      {folder},
      "expected a folder with model.safetensors or pytorch_model.bin (diffusers': "
      "diffusion_pytorch_model.safetensors), whole or with an .index.json, or a checkpoint's folder");
}

}  // namespace

std::unique_ptr<TensorSource> open_weights(const Disk& disk, const std::string& path, const AxisRank& rank) {
  if (disk.exists(path + "/manifest.json")) return open_saved(disk, path, rank);
  if (std::filesystem::is_directory(path)) return open_folder(disk, path);
  return has_extension(path, {".index.json"}) && disk.exists(path) ? open_set(disk, path)
                                                                   : open_file(disk, path);
}

}  // namespace tutti

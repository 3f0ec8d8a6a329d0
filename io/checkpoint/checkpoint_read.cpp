#include <ATen/ATen.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "io/checkpoint/checkpoint.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The destination of a range of bytes of a file.
struct Destination {
  uint64_t begin = 0;  // offset in the file
  uint64_t bytes = 0;
  std::byte* to = nullptr;
};

// Copies the bytes of `chunk` that belong to `part`. `begin`: offset of the chunk in the file.
void scatter(const Destination& part, uint64_t begin, std::span<const std::byte> chunk) {
  const uint64_t first = std::max(begin, part.begin);
  const uint64_t last = std::min(begin + chunk.size(), part.begin + part.bytes);
  if (first < last) std::memcpy(part.to + (first - part.begin), chunk.data() + (first - begin), last - first);
}

void check_size(const Disk& disk, const std::string& path, uint64_t expected) {
  if (!disk.exists(path)) throw OperatingError(path + ": missing");
  const uint64_t bytes = disk.size(path);
  if (bytes == expected) return;
  const std::string sizes = std::to_string(bytes) + " of " + std::to_string(expected) + " bytes";
  throw OperatingError(path + (bytes < expected ? ": truncated at " : ": too long, ") + sizes);
}

// Reads and hashes a file once, front to back, and fills `parts`, which are sorted by `begin`.
void read_file(const Disk& disk, const std::string& path, const RankFile& file,
               const std::vector<Destination>& parts) {
  check_size(disk, path, file.bytes);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  size_t next = 0;
  for (uint64_t at = 0; at < file.bytes; at += kChunkBytes) {
    const auto chunk = disk.read_range(path, at, std::min(kChunkBytes, file.bytes - at));
    XXH3_64bits_update(hash.get(), chunk.data(), chunk.size());
    while (next < parts.size() && parts[next].begin + parts[next].bytes <= at) ++next;
    for (size_t i = next; i < parts.size() && parts[i].begin < at + chunk.size(); ++i)
      scatter(parts[i], at, chunk);
  }
  if (XXH3_64bits_digest(hash.get()) != file.hash) {
    throw OperatingError(path + ": corrupt: its hash is not the one in the manifest");
  }
}

// True if a tensor of this shape and dtype takes at most `bytes`. Sizes are not negative.
bool takes_at_most(uint64_t bytes, const Shape& shape, at::ScalarType dtype) {
  uint64_t taken = c10::elementSize(dtype);
  for (const int64_t size : shape)
    if (size != 0 && __builtin_mul_overflow(taken, static_cast<uint64_t>(size), &taken)) return false;
  return taken <= bytes || std::ranges::count(shape, 0) > 0;
}

void check_piece(const std::string& path, const RankFile& file, const CheckpointPiece& piece,
                 uint64_t bytes_of_all) {
  bool inside = piece.offset.size() == piece.shape.size() && piece.extent.size() == piece.shape.size();
  for (size_t i = 0; inside && i < piece.shape.size(); ++i) {
    inside = piece.offset[i] >= 0 && piece.extent[i] >= 0 && piece.extent[i] <= piece.shape[i] &&
             piece.offset[i] <= piece.shape[i] - piece.extent[i];
  }
  inside =
      inside && piece.at <= file.bytes && takes_at_most(file.bytes - piece.at, piece.extent, piece.dtype);
  if (inside && !takes_at_most(bytes_of_all, piece.shape, piece.dtype))
    throw OperatingError(path + ": " + piece.name + ": its pieces hold less than the whole tensor");
  if (!inside) throw OperatingError(path + ": " + piece.name + " lies outside of its tensor or of the file");
}

// Assembles whole tensors from pieces.
class Assembly {
 public:
  explicit Assembly(const std::vector<RankFile>& files) {
    for (const RankFile& file : files) bytes_ += file.bytes;
  }

  void add(const Disk& disk, const std::string& folder, const RankFile& file) {
    const std::string path = folder + "/" + file.file;
    std::vector<Destination> parts;
    std::vector<std::pair<at::Tensor, at::Tensor>>
        copies;  // of pieces whose rows are not whole: (place, values)
    for (const CheckpointPiece& piece : file.pieces) {
      check_piece(path, file, piece, bytes_);
      const at::Tensor place = place_of(path, piece);
      const at::Tensor values = place.is_contiguous() ? place : at::empty(piece.extent, piece.dtype);
      if (!values.is_same(place)) copies.emplace_back(place, values);
      parts.push_back({piece.at, values.nbytes(), static_cast<std::byte*>(values.mutable_data_ptr())});
    }
    std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    read_file(disk, path, file, parts);
    for (auto& [place, values] : copies) place.copy_(values);
  }

  std::map<std::string, at::Tensor> finish(const std::string& folder) {
    for (const auto& [name, tensor] : tensors_) {
      if (filled_[name] != tensor.numel()) {
        throw OperatingError(folder + ": " + name + ": its pieces hold " + std::to_string(filled_[name]) +
                             " of " + std::to_string(tensor.numel()) + " elements");
      }
    }
    return std::move(tensors_);
  }

 private:
  at::Tensor place_of(const std::string& path, const CheckpointPiece& piece) {
    const auto found = tensors_.find(piece.name);
    const at::Tensor whole = found == tensors_.end() ? at::empty(piece.shape, piece.dtype) : found->second;
    if (whole.sizes() != at::IntArrayRef(piece.shape) || whole.scalar_type() != piece.dtype) {
      throw OperatingError(path + ": " + piece.name + " has another shape or dtype than in the other files");
    }
    tensors_.emplace(piece.name, whole);
    filled_[piece.name] += c10::multiply_integers(piece.extent);
    at::Tensor place = whole;
    for (size_t i = 0; i < piece.shape.size(); ++i) {
      place = place.narrow(static_cast<int64_t>(i), piece.offset[i], piece.extent[i]);
    }
    return place;
  }

  uint64_t bytes_ = 0;  // of all files
  std::map<std::string, at::Tensor> tensors_;
  std::map<std::string, int64_t> filled_;
};

std::string manifest_text(const Disk& disk, const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  return disk.exists(path) ? text_of(disk.read(path)) : std::string();
}

// Moves the target of `latest` to the front.
void prefer_latest(const Disk& disk, const std::string& checkpoints, const std::string& latest,
                   std::vector<std::string>& names) {
  const std::string wanted = latest.empty() ? "" : manifest_text(disk, checkpoints + "/" + latest);
  if (wanted.empty()) return;
  std::stable_partition(names.begin(), names.end(), [&](const std::string& name) {
    return manifest_text(disk, checkpoints + "/" + name) == wanted;
  });
}

// The step of a checkpoint; -1 if its manifest cannot be read.
int64_t step_of(const Disk& disk, const std::string& folder) try {
  return RunState::from_json(read_manifest(disk, folder).state).step;
} catch (const OperatingError&) {
  return -1;
}

// Names of the checkpoints that do not fit the default pattern. A checkpoint and links to it count once.
std::vector<std::string> unusual_names(const Disk& disk, const std::string& folder) {
  std::map<std::string, std::string> by_manifest;
  for (const std::string& name : disk.list(folder)) {
    const std::string text = manifest_text(disk, folder + "/" + name);
    if (text.empty() || name == kLatest || name[0] == '.') continue;
    by_manifest.emplace(text, name);
  }
  std::vector<std::pair<int64_t, std::string>> by_step;
  for (const auto& [text, name] : by_manifest)
    if (!CheckpointNames().fits(name)) by_step.emplace_back(step_of(disk, folder + "/" + name), name);
  std::sort(by_step.begin(), by_step.end());
  std::vector<std::string> names;
  for (auto& [step, name] : by_step) names.push_back(std::move(name));
  return names;
}

// The first good checkpoint, or one without a folder.
Checkpoint first_good(const Disk& disk, const std::vector<std::string>& folders,
                      const std::function<void(const std::string&)>& on_bad) {
  for (const std::string& folder : folders) {
    try {
      return read_checkpoint(disk, folder);
    } catch (const OperatingError& error) {
      on_bad(error.what());
    }
  }
  return {};
}

}  // namespace

CheckpointManifest read_manifest(const Disk& disk, const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  if (!disk.exists(path)) throw OperatingError(path + ": missing: the checkpoint was never finished");
  try {
    return CheckpointManifest::from_json(text_of(disk.read(path)));
  } catch (const OperatingError& error) {
    throw OperatingError(path + ": " + error.what());
  }
}

Checkpoint read_checkpoint(const Disk& disk, const std::string& folder) {
  CheckpointManifest manifest = read_manifest(disk, folder);
  Assembly assembly(manifest.files);
  for (const RankFile& file : manifest.files) assembly.add(disk, folder, file);
  return {folder, std::move(manifest.state), assembly.finish(folder)};
}

std::vector<std::string> checkpoints_to_try(const Disk& disk, const std::string& checkpoints,
                                            const CheckpointSet& set) {
  std::vector<std::string> names = published_checkpoints(disk, checkpoints, set.names);
  std::reverse(names.begin(), names.end());
  prefer_latest(disk, checkpoints, set.latest, names);
  return names;
}

// The folder of a run's checkpoints, from its recipe; else `path` itself.
std::string folder_of_checkpoints(const Disk& disk, const std::string& path) {
  if (disk.exists(path + "/checkpoints")) return path + "/checkpoints";
  const std::string recipe = path + "/recipe.toml";
  if (!disk.exists(recipe)) return path;
  const Setting parsed = parse_recipe(text_of(disk.read(recipe)), recipe);
  const Setting* checkpoint = parsed.find("checkpoint");
  const Setting* folder = checkpoint ? checkpoint->find("save_folder") : nullptr;
  return folder && folder->is_text() ? folder->text() : path;
}

std::vector<std::string> checkpoints_at(const Disk& disk, const std::string& path) {
  if (disk.exists(path + "/manifest.json") || disk.exists(path + "/rank-0.h5")) return {path};
  const std::string folder = folder_of_checkpoints(disk, path);
  std::vector<std::string> names = checkpoints_to_try(disk, folder, {});
  if (names.empty()) {
    names = unusual_names(disk, folder);
    std::reverse(names.begin(), names.end());
  }
  for (std::string& name : names) name = folder + "/" + name;
  return names;
}

Checkpoint newest_good_checkpoint(const Disk& disk, const std::string& checkpoints,
                                  const std::function<void(const std::string&)>& on_bad,
                                  const CheckpointSet& set) {
  std::vector<std::string> folders = checkpoints_to_try(disk, checkpoints, set);
  for (std::string& name : folders) name = checkpoints + "/" + name;
  return first_good(disk, folders, on_bad);
}

Checkpoint find_checkpoint(const Disk& disk, const std::string& path,
                           const std::function<void(const std::string&)>& on_bad) {
  const auto folders = checkpoints_at(disk, path);
  if (folders == std::vector<std::string>{path}) return read_checkpoint(disk, path);
  if (!disk.exists(path)) throw OperatingError(path + ": expected the folder of a checkpoint or of a run");
  Checkpoint found = first_good(disk, folders, on_bad);
  if (found.folder.empty()) throw OperatingError(path + ": there is no good checkpoint");
  return found;
}

}  // namespace tutti

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_summary.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/newer_format.h"
#include "io/checkpoint/saved_state.h"
#include "recipe/placeholders.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/probe/probe.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

constexpr uint64_t kHashedBytes = uint64_t{1} << 20;  // at once: they fit the processor's cache

void check_size(const Disk& disk, const std::string& path, uint64_t expected) {
  if (!disk.exists(path)) throw OperatingError({path}, "missing");
  const uint64_t bytes = disk.size(path);
  if (bytes == expected) return;
  const std::string sizes = std::to_string(bytes) + " of " + std::to_string(expected) + " bytes";
  throw OperatingError(path + (bytes < expected ? ": truncated at " : ": too long, ") + sizes);
}

void verify_file(const Disk& disk, const std::string& path, const RankFile& file) {
  check_size(disk, path, file.bytes);
  if (file.hash == 0) return;
  std::vector<std::byte> buffer(std::min(kHashedBytes, file.bytes));
  StreamedHash hash;
  for (uint64_t at = 0; at < file.bytes; at += kHashedBytes) {
    const auto chunk = std::span(buffer).first(std::min(kHashedBytes, file.bytes - at));
    disk.read_into(path, at, chunk);
    hash.add(chunk);
  }
  if (hash.value() == file.hash) return;
  TUTTI_PROBE("checkpoint: a file has another hash");
  throw OperatingError({path}, "corrupt: its hash is not the one in the manifest");
}

std::string manifest_text(const Disk& disk, const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  return disk.exists(path) ? disk.read_text(path, kMostManifestBytes) : std::string();
}

// Moves the target of `latest` to the front.
void prefer_latest(const Disk& disk, const std::string& checkpoints, const std::string& latest,
                   std::vector<std::string>& names) {
  const std::string latest_manifest = latest.empty() ? "" : manifest_text(disk, checkpoints + "/" + latest);
  if (latest_manifest.empty()) return;
  std::stable_partition(names.begin(), names.end(), [&](const std::string& name) {
    return manifest_text(disk, checkpoints + "/" + name) == latest_manifest;
  });
}

// The step of a checkpoint; -1 if its manifest cannot be read.
int64_t step_of(const Disk& disk, const std::string& folder) try {
  return state_in(disk, folder).time.batch;
} catch (const NewerFormat&) {
  throw;
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

Checkpoint open_good(const Disk& disk, const std::string& folder, const CheckpointSearch& search) {
  Checkpoint checkpoint = open_checkpoint(disk, folder);
  search.verify ? search.verify(checkpoint) : verify_files(disk, checkpoint);
  return checkpoint;
}

// The first good checkpoint, or one without a folder.
Checkpoint first_good(const Disk& disk, const std::vector<std::string>& folders,
                      const CheckpointSearch& search) {
  for (const std::string& folder : folders) {
    try {
      return open_good(disk, folder, search);
    } catch (const NewerFormat& error) {
      throw UserError(error.what());
    } catch (const OperatingError& error) {
      search.on_bad(error.what());
      if (&folder == &folders.back()) TUTTI_PROBE("resume: the oldest checkpoint is bad as well");
    }
  }
  return {};
}

}  // namespace

std::string path_of(const Checkpoint& checkpoint, const RankFile& file) {
  return file.file.starts_with('/') ? file.file : checkpoint.folder + "/" + file.file;
}

CheckpointManifest read_manifest(const Disk& disk, const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  if (!disk.exists(path)) throw OperatingError({path}, "missing: the checkpoint was never finished");
  try {
    return CheckpointManifest::from_json(disk.read_text(path, kMostManifestBytes));
  } catch (const NewerFormat& error) {
    throw NewerFormat({path}, error.what());
  } catch (const OperatingError& error) {
    throw OperatingError({path}, error.what());
  }
}

Checkpoint open_checkpoint(const Disk& disk, const std::string& folder) {
  Checkpoint checkpoint{folder, read_manifest(disk, folder)};
  const CheckpointTensors checked(disk, checkpoint);
  return checkpoint;
}

void verify_files(const Disk& disk, const Checkpoint& checkpoint, const AxisRank& rank) {
  const auto& files = checkpoint.manifest.files;
  for (std::size_t i = rank.index; i < files.size(); i += rank.size)
    verify_file(disk, path_of(checkpoint, files[i]), files[i]);
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
  const Setting parsed = parse_recipe(disk.read_text(recipe, kMostTextBytes), recipe);
  const Setting* checkpoint = parsed.find("checkpoint");
  const Setting* folder = checkpoint ? checkpoint->find("save_folder") : nullptr;
  return folder && folder->is_text() && !is_remote_path(folder->text()) ? folder->text() : path;
}

// Other programs' checkpoints: a file, or a folder of Hugging Face's or of torch.distributed.checkpoint.
void refuse_checkpoint_of_others(const Disk& disk, const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error) || disk.exists(path + "/config.json") ||
      disk.exists(path + "/.metadata"))
    throw OperatingError({path},
                         "is no checkpoint of tutti; `tutti import " + path +
                             " --recipe RECIPE` makes one of another program's, and [checkpoint] load_path "
                             "takes it as it is");
}

std::vector<std::string> checkpoints_at(const Disk& disk, const std::string& path) {
  if (disk.exists(path + "/manifest.json") || disk.exists(path + "/rank-0.h5")) return {path};
  refuse_checkpoint_of_others(disk, path);
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
                                  const CheckpointSearch& search, const CheckpointSet& set) {
  std::vector<std::string> folders = checkpoints_to_try(disk, checkpoints, set);
  for (std::string& name : folders) name = checkpoints + "/" + name;
  return first_good(disk, folders, search);
}

Checkpoint find_checkpoint(const Disk& disk, const std::string& path, const CheckpointSearch& search) {
  const auto folders = checkpoints_at(disk, path);
  if (folders == std::vector<std::string>{path}) return open_good(disk, path, search);
  if (!disk.exists(path))
    throw OperatingError({path}, "there is no such folder; expected that of a checkpoint or of a run");
  Checkpoint checkpoint = first_good(disk, folders, search);
  if (checkpoint.folder.empty()) throw OperatingError({path}, "there is no good checkpoint");
  return checkpoint;
}

}  // namespace tutti

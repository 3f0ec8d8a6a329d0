#include "sim/replay/saved_checkpoint.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/newer_format.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr const char* kManifest = "/manifest.json";

// The newest checkpoint that the replay has published; "" = none.
std::string newest_replayed(SimDisk& replayed, const std::string& checkpoints, const CheckpointNames& names) {
  std::vector<std::string> all = published_checkpoints(*replayed.view(0), checkpoints, names);
  std::reverse(all.begin(), all.end());
  for (const std::string& name : all)
    if (const std::string folder = checkpoints + '/' + name; replayed.wrote(folder + kManifest))
      return folder;
  return "";
}

// Training seconds are measured by the attempt that saves, and its replay has them from the record.
bool is_of_one_start(const CheckpointManifest& first, const CheckpointManifest& second) {
  const RunState a = RunState::from_json(first.state), b = RunState::from_json(second.state);
  return std::tie(a.run_name, a.time.batch, a.time.total_wct) ==
         std::tie(b.run_name, b.time.batch, b.time.total_wct);
}

struct OpenFile {
  const Disk& disk;
  const std::string folder;
  const RankFile& file;

  std::vector<std::byte> read(const CheckpointPiece& piece) const {
    uint64_t bytes = c10::elementSize(piece.dtype);
    for (const int64_t size : piece.extent) bytes *= static_cast<uint64_t>(size);
    return disk.read_range(folder + '/' + file.file, piece.at, bytes);
  }
};

// The first tensor in which two files differ; "" = none.
std::string differing_tensor(const OpenFile& first, const OpenFile& second) {
  const auto layout = [](const CheckpointPiece& piece) {
    return std::tie(piece.name, piece.shape, piece.offset, piece.extent, piece.dtype);
  };
  const auto &a = first.file.pieces, &b = second.file.pieces;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size() || i >= b.size()) return (i < a.size() ? a : b)[i].name;
    if (layout(a[i]) != layout(b[i]) || first.read(a[i]) != second.read(b[i])) return a[i].name;
  }
  return "";
}

std::string difference(const Disk& disk, const Disk& replayed, const Checkpoint& saved,
                       const CheckpointManifest& made) {
  if (saved.manifest.files.size() != made.files.size()) return "it is of another number of ranks";
  for (std::size_t i = 0; i < made.files.size(); ++i) {
    const RankFile &ours = saved.manifest.files[i], &theirs = made.files[i];
    if (ours.hash == theirs.hash && ours.bytes == theirs.bytes) continue;
    const std::string tensor = differing_tensor({disk, saved.folder, ours}, {replayed, saved.folder, theirs});
    if (!tensor.empty()) return theirs.file + " differs in " + tensor;
  }
  return "";
}

}  // namespace

int64_t newest_saved_step(const std::string& checkpoints, const CheckpointNames& names,
                          const std::string& resumed) try {
  const PosixDisk disk;
  const auto all = published_checkpoints(disk, checkpoints, names);
  if (all.empty()) return 0;
  const CheckpointManifest newest = read_manifest(disk, checkpoints + '/' + all.back());
  if (!resumed.empty() && is_of_one_start(newest, read_manifest(disk, resumed))) return 0;
  return RunState::from_json(newest.state).time.batch;
} catch (const NewerFormat& error) {
  throw UserError(error.what());
} catch (const OperatingError&) {
  return 0;
}

CheckpointComparison compare_checkpoint(SimDisk& replayed, const std::string& checkpoints,
                                        const CheckpointNames& names, bool exact) try {
  const PosixDisk disk;
  const std::string folder = newest_replayed(replayed, checkpoints, names);
  if (folder.empty() || !disk.exists(folder)) return {};
  const Checkpoint saved = open_checkpoint(disk, folder);
  verify_files(disk, saved);
  const auto memory = replayed.view(0);
  const CheckpointManifest made = read_manifest(*memory, folder);
  if (!is_of_one_start(saved.manifest, made)) return {true, folder + " is of another attempt of the run"};
  const std::string text = exact ? difference(disk, *memory, saved, made) : "";
  if (text.empty()) return {};
  return {false, folder + " is not what the replay saves there: " + text};
} catch (const NewerFormat& error) {
  throw UserError(error.what());
} catch (const OperatingError& error) {
  return {false, std::string("the run's checkpoint is damaged: ") + error.what()};
}

}  // namespace tutti

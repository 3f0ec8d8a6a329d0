#include "io/remote/remote_checkpoints.h"

#include <algorithm>
#include <filesystem>

#include "io/replaced_file.h"
#include "recipe/placeholders.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostNameBytes = 4096;

// Removed at the end of its scope.
struct PassingFile {
  std::string path;
  ~PassingFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

std::string latest_in(const RemoteStore& store, const std::string& latest) try {
  const PassingFile file{store.scratch("latest")};
  store.fetch(latest, file.path);
  const std::string text = PosixDisk().read_text(file.path, kMostNameBytes);
  return text.substr(0, text.find('\n'));
} catch (const OperatingError&) {
  return "";  // the newest is then found by its name
}

void require_file_names(const CheckpointManifest& manifest) {
  for (const RankFile& file : manifest.files)
    if (!is_plain_word(file.file) || file.file.find('/') != std::string::npos)
      throw OperatingError("its manifest names a file " + shown(file.file) + ", which no checkpoint has");
}

}  // namespace

std::vector<std::string> remote_checkpoints(const RemoteStore& store, const CheckpointSet& set) {
  const std::string manifest = std::string("/") + kManifestFile;
  bool has_latest = false;
  std::vector<std::string> all;
  for (const std::string& file : store.list()) {
    if (file == kManifestFile) return {""};
    has_latest = has_latest || file == set.latest;
    const std::string name = file.substr(0, file.find('/'));
    if (file == name + manifest) all.push_back(name);
  }
  std::vector<std::string> names = set.names.ordered(all);
  std::ranges::reverse(names);
  if (!has_latest || names.empty()) return names;
  const std::string latest = latest_in(store, set.latest);
  std::ranges::stable_partition(names, [&](const std::string& name) { return name == latest; });
  return names;
}

void name_latest(const RemoteStore& store, const std::string& latest, const std::string& name) {
  const PassingFile file{store.scratch("latest")};
  PosixDisk disk;
  replace_file(disk, file.path, name + '\n');
  store.upload(file.path, latest);
}

void fetch_checkpoint(const RemoteStore& store, const std::string& name, const std::string& folder) {
  PosixDisk disk;
  const std::string front = name.empty() ? "" : name + '/';
  const auto slash = folder.rfind('/');
  const std::string unfinished =
      unfinished_folder(folder.substr(0, slash), folder.substr(slash + 1), "fetch");
  disk.remove_all(unfinished);
  disk.make_folders(unfinished);
  try {
    store.fetch(front + kManifestFile, unfinished + '/' + kManifestFile);
    const CheckpointManifest manifest = read_manifest(disk, unfinished);
    require_file_names(manifest);
    for (const RankFile& file : manifest.files) store.fetch(front + file.file, unfinished + '/' + file.file);
    verify_files(disk, open_checkpoint(disk, unfinished));
    disk.sync_folder(unfinished);
    disk.rename(unfinished, folder);
    disk.sync_folder(folder.substr(0, slash));
  } catch (...) {
    disk.remove_all(unfinished);
    throw;
  }
}

}  // namespace tutti

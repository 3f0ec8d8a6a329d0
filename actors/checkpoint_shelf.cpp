#include "actors/checkpoint_shelf.h"

#include <algorithm>

#include "runtime/error.h"

namespace tutti {

CheckpointShelf::CheckpointShelf(Disk& disk, Log& log, std::string folder, int keep)
    : disk_(disk), log_(log), folder_(std::move(folder)), keep_(keep) {}

std::string CheckpointShelf::choose(const Setting& resume) const try {
  if (resume.is_none()) return "";
  const auto on_bad = [this](const std::string& what) { log_.warning("passed over: " + what); };
  return resume.text() == "auto" ? newest_good_checkpoint(disk_, folder_, on_bad).folder
                                 : find_checkpoint(disk_, resume.text(), on_bad).folder;
} catch (const OperatingError& error) {
  resume.fail(error.what());
}

void CheckpointShelf::begin(const std::string& resumed) {
  disk_.make_folders(folder_);
  remove_unpublished(disk_, folder_);
  const auto names = published_checkpoints(disk_, folder_);
  const std::size_t own = own_steps(names, resumed);
  if (own < names.size()) put_aside({names.begin() + static_cast<int64_t>(own), names.end()});
  if (own > 0) disk_.symlink(names[own - 1], folder_ + "/latest");
}

// How many of the checkpoints here lead up to the one that is resumed, itself included.
std::size_t CheckpointShelf::own_steps(const std::vector<std::string>& names,
                                       const std::string& resumed) const {
  if (resumed.empty()) return 0;
  // One that lost its manifest in a crash still lies here.
  const auto manifest = [this](const std::string& folder) {
    const std::string path = folder + "/manifest.json";
    return disk_.exists(path) ? disk_.read(path) : std::vector<std::byte>();
  };
  const auto wanted = manifest(resumed);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (manifest(folder_ + '/' + names[i]) == wanted) return i + 1;
  return 0;
}

void CheckpointShelf::put_aside(const std::vector<std::string>& names) {
  const std::string aside = unused_path(disk_, folder_ + "/earlier");
  disk_.make_folders(aside);
  disk_.remove_all(folder_ + "/latest");
  for (const auto& name : names) disk_.rename(folder_ + "/" + name, aside + "/" + name);
  disk_.sync_folder(folder_);
  log_.warning("checkpoints that this run does not go on from are now in " + aside);
}

std::string CheckpointShelf::publish(const std::string& name, const std::string& unfinished,
                                     const CheckpointManifest& manifest) {
  try {
    publish_checkpoint(disk_, unfinished, folder_ + "/" + name, manifest, &viewer_);
  } catch (const OperatingError& error) {
    return error.what();
  }
  prune(name);
  return "";
}

void CheckpointShelf::discard(const std::string& unfinished) try {
  disk_.remove_all(unfinished);
} catch (const OperatingError& error) {
  log_.warning(error.what());
}

// Those of later steps are damaged, or their steps are done again: they are replaced in time.
void CheckpointShelf::prune(const std::string& newest) try {
  if (keep_ < 0) return;
  auto names = published_checkpoints(disk_, folder_);
  names.erase(std::find(names.begin(), names.end(), newest), names.end());
  for (std::size_t i = 0; i + std::max(keep_, 1) <= names.size(); ++i)
    remove_checkpoint(disk_, folder_ + "/" + names[i]);
} catch (const OperatingError& error) {
  log_.warning(error.what());
}

}  // namespace tutti

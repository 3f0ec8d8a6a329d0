#include "actors/supervisor/run_folder.h"

#include <algorithm>

#include "io/journal/recorded_run.h"
#include "io/run_paths.h"
#include "runtime/error.h"
#include "runtime/regular_file.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr Nanoseconds kLockTimeout = std::chrono::seconds(5);
constexpr Nanoseconds kLockInterval = std::chrono::milliseconds(100);

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

void write_small_file(Disk& disk, const std::string& path, const std::string& text) {
  auto file = disk.open(path, /*truncate=*/true);
  file->append(bytes_of(text));
  file->sync();
  file->close();
}

}  // namespace

RunFolder::RunFolder(Disk& disk, std::string path, std::string checkpoints)
    : disk_(disk), path_(std::move(path)), checkpoints_(std::move(checkpoints)) {}

void RunFolder::open(Context& context, const std::string& host, Log& log) {
  disk_.make_folders(path_);
  disk_.make_folders(checkpoints_);
  std::vector<std::string> folders{path_};
  if (plain_path(path_) != plain_path(checkpoints_)) folders.push_back(checkpoints_);
  for (const std::string& folder : folders) {
    auto taken = lock(context, folder, host, log);
    const std::string path = folder + '/' + kRunLock;
    held_.push_back({path, std::move(taken), disk_.identity(path)});
  }
  disk_.remove_all(path_ + '/' + kStopFile);  // of an earlier run
}

std::unique_ptr<DiskLock> RunFolder::lock(Context& context, const std::string& folder,
                                          const std::string& host, Log& log) {
  const std::string path = folder + '/' + kRunLock;
  const TimePoint until = context.now() + kLockTimeout;
  for (bool first = true;; first = false) {
    if (auto taken = disk_.lock(path, "host " + host)) return taken;
    const std::string other =
        folder + ": a run is under way in it, on " + disk_.read_text(path, kMostTextBytes);
    if (context.now() >= until)
      throw UserError(other + "; `tutti stop` ends it, and --run-dir gives this one a folder of its own");
    if (first) log.warning(other + "; waits 5 s for its end");
    context.sleep(kLockInterval);
  }
}

void RunFolder::write_nonce(const std::string& nonce) { write_small_file(disk_, nonce_path(), nonce); }

bool RunFolder::has_nonce(const std::string& nonce) const {
  return disk_.exists(nonce_path()) && disk_.read_text(nonce_path(), kMostTextBytes) == nonce;
}

void RunFolder::remove_nonce() { disk_.remove_all(nonce_path()); }

void RunFolder::write_recipe(const std::string& recipe) {
  const std::string path = path_ + '/' + kRecipeFile;
  write_small_file(disk_, path, recipe);
  held_.push_back({path, nullptr});
}

void RunFolder::prune_journals(int keep) {
  const std::string folder = journals_folder(path_);
  const auto attempts = disk_.list(folder);  // by name, and so by time
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < attempts.size(); ++i)
    disk_.remove_all(folder + '/' + attempts[i]);
}

// A disk that does not answer is no reason to end a run.
std::string RunFolder::gone() const try {
  const auto gone = std::ranges::find_if(held_, [this](const Held& held) {
    const uint64_t identity = disk_.identity(held.path);
    return held.lock ? identity != held.identity : identity == 0;
  });
  if (gone == held_.end()) return "";
  const std::string folder = gone->path.substr(0, gone->path.rfind('/'));
  return folder +
         ": was moved, removed or emptied under way, so nothing more can be saved in it; if it was moved, "
         "continue there with " +
         (folder == path_ ? "--run-dir" : "checkpoint.save_folder") + " and --resume auto";
} catch (const OperatingError&) {
  return "";
}

bool RunFolder::stop_requested() {
  const std::string path = path_ + '/' + kStopFile;
  if (!disk_.exists(path)) return false;
  disk_.remove_all(path);
  return true;
}

}  // namespace tutti

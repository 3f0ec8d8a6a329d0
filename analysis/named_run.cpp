#include "analysis/named_run.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "analysis/run_folder.h"
#include "io/checkpoint/checkpoint_summary.h"
#include "io/run_paths.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using Change = std::pair<int64_t, int64_t>;  // seconds, nanoseconds

constexpr const char* kBestLink = "best";

Change last_change(const std::string& run_dir) {
  Change last;
  for (const char* name : {kRecipeFile, kMetricsFile, kResultFile, kRunLock}) {
    struct stat facts {};
    if (::stat((run_dir + '/' + name).c_str(), &facts) == 0)
      last = std::max(last, Change(facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec));
  }
  return last;
}

// A folder that cannot be read is no choice of this command's user, nor is a range test.
bool is_readable_run(const std::string& folder) try {
  std::error_code error;
  return fs::is_directory(folder, error) && is_run_folder(newest_stage(folder)) && !is_range_test(folder);
} catch (const UserError&) {
  return false;
}

bool begins(const std::string& whole, const std::string& beginning) {
  if (!whole.starts_with(beginning) || beginning.empty()) return false;
  return whole.size() == beginning.size() || !is_digit(beginning.back()) ||
         !is_digit(whole[beginning.size()]);
}

std::string target_of_link(const std::string& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  return error || target.has_parent_path() || !fs::exists(link, error) ? "" : target.string();
}

}  // namespace

std::string newest_run(const std::string& runs) {
  std::pair<Change, std::string> newest;
  for (const std::string& name : PosixDisk().list(runs)) {
    const std::string run_dir = runs + '/' + name;
    if (is_readable_run(run_dir)) newest = std::max(newest, {last_change(newest_stage(run_dir)), run_dir});
  }
  if (newest.second.empty()) throw UserError("there is no run in " + runs + "/; name a run's folder");
  return newest.second;
}

std::vector<std::string> checkpoint_names(const std::string& checkpoints) {
  std::vector<std::string> names;
  for (const CheckpointSummary& checkpoint : checkpoint_summaries(PosixDisk(), checkpoints))
    names.push_back(checkpoint.name);
  return names;
}

std::string named_checkpoint(const std::string& checkpoints, const std::string& name) {
  const std::string best = name == kBestLink ? target_of_link(checkpoints + '/' + kBestLink) : "";
  const std::vector<std::string> names = checkpoint_names(checkpoints);
  const std::string& whole = best.empty() ? name : best;
  if (std::ranges::count(names, whole) > 0) return checkpoints + '/' + whole;
  const auto fits = [&](const std::string& checkpoint) { return begins(checkpoint, name); };
  if (std::ranges::count_if(names, fits) != 1) return "";
  return checkpoints + '/' + *std::ranges::find_if(names, fits);
}

}  // namespace tutti

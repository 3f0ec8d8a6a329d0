#include "analysis/run_folder.h"

#include <algorithm>
#include <filesystem>

#include "io/journal/recorded_run.h"
#include "io/json/json_text.h"
#include "io/run_paths.h"
#include "recipe/placeholders.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Files and folders of a run besides the recipe; in a copy some may be missing.
constexpr const char* kLeft[] = {kRunLock, kMetricsFile, kResultFile, "log/rank-0.log"};

constexpr const char* kCheckpoints = "checkpoints";

// A link, a pipe and a folder are there too.
bool is_there(const std::string& folder, const char* name) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(fs::path(folder) / name, error);
  if (status.type() == fs::file_type::none || status.type() == fs::file_type::unknown)
    throw UserError(folder + ": cannot be read: " + error.message());
  return fs::exists(status);
}

// True if a subfolder of the folder has the file `path_of` it.
bool has_below(const std::string& folder, std::string (*path_of)(const std::string& subfolder)) {
  std::error_code error, unknown;
  for (fs::directory_iterator below(folder, error), end; !error && below != end; below.increment(error))
    if (fs::exists(path_of(below->path()), unknown)) return true;
  return false;
}

std::string journal_of(const std::string& attempt) { return journal_path(attempt, /*rank=*/0); }
std::string manifest_of(const std::string& checkpoint) { return checkpoint + "/manifest.json"; }

// Other programs also have a folder or a file called log.
bool has_been_trained_in(const std::string& folder) {
  return std::ranges::any_of(kLeft, [&](const char* name) { return is_there(folder, name); }) ||
         has_below(journals_folder(folder), journal_of) ||
         has_below(folder + '/' + kCheckpoints, manifest_of);
}

// The host of a run under way; "" = not known.
std::string holder_of(const std::string& run_dir) try {
  return text_of_file(run_dir + '/' + kRunLock, kMostTextBytes);
} catch (const OperatingError&) {
  return "";
}

// Reads what belongs to a run: a file that cannot be read is an error of its folder.
template <class Read>
auto blame_user(Read read) {
  try {
    return read();
  } catch (const OperatingError& error) {
    throw UserError(error.what());
  }
}

}  // namespace

bool is_run_folder(const std::string& folder) {
  return is_there(folder, kRecipeFile) && has_been_trained_in(folder);
}

std::vector<std::string> stage_runs(const std::string& folder) {
  std::vector<std::string> runs;
  for (std::string run = folder + '/' + kStageFolder + '1'; is_run_folder(run);
       run = folder + '/' + kStageFolder + std::to_string(runs.size() + 1))
    runs.push_back(run);
  return runs;
}

std::string newest_stage(const std::string& folder) {
  const std::vector<std::string> runs = stage_runs(folder);
  return runs.empty() ? folder : runs.back();
}

bool is_range_test(const std::string& folder) {
  std::error_code unknown;
  return fs::exists(fs::path(folder) / kRangeTestFile, unknown);
}

bool is_sweep_folder(const std::string& folder) {
  std::error_code unknown;
  return fs::exists(fs::path(folder) / kSweepFile, unknown);
}

void require_no_sweep(const std::string& folder) {
  if (is_sweep_folder(folder))
    throw UserError({folder}, "is the folder of a sweep; --run-dir OTHER trains elsewhere");
}

std::vector<std::string> trial_runs(const std::string& folder) {
  std::vector<std::string> runs;
  for (const std::string& name : PosixDisk().list(folder))
    if (const std::string run = folder + '/' + name; fs::is_directory(run) && is_run_folder(run))
      runs.push_back(run);
  std::ranges::sort(runs);
  return runs;
}

void require_run_folder(const std::string& run_dir) {
  std::error_code error;
  if (!fs::is_directory(run_dir, error)) throw UserError(run_dir + ": there is no such folder");
  if (is_sweep_folder(run_dir))
    throw UserError({run_dir}, "is the folder of a sweep, whose trials are runs: tutti ls " +
                                   on_one_line(run_dir) + " lists them");
  if (!is_there(run_dir, kRecipeFile))
    throw UserError(run_dir + ": not a run folder: it has no " + kRecipeFile);
  if (!has_been_trained_in(run_dir))
    throw UserError(run_dir + ": not a run folder: it has a " + kRecipeFile +
                    " and nothing else that a run leaves");
}

std::string text_at(const Setting& recipe, const char* section, const char* key) {
  const Setting* table = recipe.find(section);
  const Setting* value = table && table->is_table() ? table->find(key) : nullptr;
  return value && value->is_text() ? value->text() : "";
}

std::string checkpoints_folder(const std::string& run_dir, const Setting& recipe) {
  const std::string folder = text_at(recipe, "checkpoint", "save_folder");
  return folder.empty() || is_remote_path(folder) ? path_in_run(run_dir, kCheckpoints)
                                                  : require_no_link_out(run_dir, folder);
}

const char* name(RunCondition condition) {
  static constexpr const char* kNames[] = {"running", "ended", "failed", "killed", "damaged"};
  return kNames[static_cast<int>(condition)];
}

RunEnding ending_of(const Disk& disk, const std::string& run_dir) {
  return blame_user([&]() -> RunEnding {
    if (disk.lock_state(run_dir + '/' + kRunLock) == LockState::kHeld)
      return {RunCondition::kRunning, "on " + holder_of(run_dir)};
    if (!is_there(run_dir, kResultFile))
      return {RunCondition::kKilled, "it left no result; log/ has the last that each rank did"};
    const std::string text = text_of_file(path_in_run(run_dir, kResultFile), kMostTextBytes);
    const Json result = parse_json<Json>(text, nullptr, /*allow_exceptions=*/false);
    const std::string how = result.is_object() ? text_member(result, "ended") : "";
    if (how.empty())
      return {RunCondition::kEnded, std::string(kResultFile) + " cannot be read, so nobody knows how"};
    return {how == "error" ? RunCondition::kFailed : RunCondition::kEnded, text_member(result, "reason"),
            result.dump(), how};
  });
}

}  // namespace tutti

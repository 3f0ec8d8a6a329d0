#include "analysis/report/reported_run.h"

#include <algorithm>
#include <filesystem>

#include "io/run_paths.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {
namespace {

void collect(const Setting& setting, std::map<std::string, std::string>& values) {
  if (setting.is_table()) {
    for (const auto& [key, member] : setting.table()) collect(member, values);
  } else if (!setting.is_none()) {
    values[setting.path] = setting.toml();
  }
}

// Of its journals.
void refuse_links_out(const Disk& disk, const std::string& run_dir) {
  const std::string journals = "journal";
  for (const std::string& start : disk.list(path_in_run(run_dir, journals))) {
    const std::string folder = journals + '/' + start;
    std::error_code error;
    if (!std::filesystem::is_directory(path_in_run(run_dir, folder), error)) continue;
    for (const std::string& file : disk.list(run_dir + '/' + folder))
      path_in_run(run_dir, folder + '/' + file);
  }
}

}  // namespace

std::vector<WorkTimes> ReportedRun::times() const {
  std::vector<WorkTimes> all;
  for (const StartSummary& start : starts) {
    if (start.steps.first == 1) all.clear();
    all.resize(std::max(all.size(), start.ranks.size()));
    for (std::size_t r = 0; r < start.ranks.size(); ++r) all[r].add(start.ranks[r].times);
  }
  return all;
}

int ReportedRun::world() const { return starts.empty() ? 0 : starts.back().job.world; }

ReportedRun read_run(const Disk& disk, const std::string& run_dir, uint64_t image_bytes) {
  require_run_folder(run_dir);
  ReportedRun run;
  run.path = run_dir;
  run.ending = ending_of(disk, run_dir);
  const std::filesystem::path whole = std::filesystem::path(run_dir + '/').lexically_normal().parent_path();
  run.name = whole.filename().empty() ? run_dir : whole.filename().string();
  run.metrics = read_metrics(disk, run_dir);
  if (run.metrics.last_step == 0)
    throw UserError(run_dir + ": there are no steps in " + run_dir + '/' + kMetricsFile +
                    ": none is done yet, or the file is lost");
  run.recipe = read_recipe(path_in_run(run_dir, kRecipeFile));
  refuse_links_out(disk, run_dir);
  for (const std::string& folder : recorded_starts(run_dir)) run.starts.push_back(summary_of_start(folder));
  run.checkpoints = checkpoint_summaries(disk, checkpoints_folder(run_dir, run.recipe));
  int logs = std::max(1, run.world());
  while (disk.exists(run_dir + "/log/rank-" + std::to_string(logs) + ".log")) ++logs;
  run.faults = log_faults(disk, run_dir, logs);
  run.logged = logged_items(disk, run_dir, run.recipe, image_bytes);
  return run;
}

std::map<std::string, std::string> recipe_values(const Setting& recipe) {
  std::map<std::string, std::string> values;
  collect(recipe, values);
  return values;
}

}  // namespace tutti

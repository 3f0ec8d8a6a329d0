#include "analysis/run_status.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <new>
#include <optional>

#include "analysis/run_folder.h"
#include "io/json/json_text.h"
#include "io/run_paths.h"
#include "recipe/toml_reader.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/regular_file.h"

namespace tutti {

std::string size_text(uint64_t bytes) {
  char text[32];
  const auto size = static_cast<double>(bytes);
  const auto [unit, of] = size >= 1e9   ? std::pair("GB", 1e9)
                          : size >= 1e6 ? std::pair("MB", 1e6)
                                        : std::pair("kB", 1e3);
  std::snprintf(text, sizeof text, "%.1f %s", size / of, unit);
  return text;
}

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

int64_t changed_unix_s(const fs::path& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? facts.st_mtime : 0;
}

// Files may vanish meanwhile: a run under way removes old checkpoints.
uint64_t bytes_below(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code vanished;
    if (!file->is_symlink(vanished) && file->is_regular_file(vanished))
      if (const auto size = file->file_size(vanished); !vanished) bytes += size;
  }
  return bytes;
}

uint64_t bytes_of(const std::vector<CheckpointSummary>& checkpoints) {
  uint64_t bytes = 0;
  for (const auto& checkpoint : checkpoints) bytes += static_cast<uint64_t>(checkpoint.bytes);
  return bytes;
}

void read_recipe_facts(RunStatus& status) {
  status.recipe = read_recipe(path_in_run(status.run_dir, kRecipeFile));
  status.max_duration = text_at(status.recipe, "train", "max_duration");
  status.checkpoints_folder = checkpoints_folder(status.run_dir, status.recipe);
}

std::string age_text(int64_t s) {
  const auto of = [](int64_t count, const char* unit) {
    return std::to_string(count) + ' ' + unit + (count == 1 ? "" : "s") + " ago";
  };
  if (s < 60) return of(std::max<int64_t>(s, 0), "second");
  if (s < 3600) return of(s / 60, "minute");
  return s < 86400 ? of(s / 3600, "hour") : of(s / 86400, "day");
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string progress_text(const RunStatus& status) {
  return std::to_string(status.metrics.step) + " (epoch " + std::to_string(status.metrics.epoch) + "), of " +
         status.max_duration;
}

void add_row(std::string& text, std::string label, const std::string& value) {
  label.resize(std::max<std::size_t>(label.size(), 26), ' ');
  text += "  " + label + ' ' + value + '\n';
}

std::string checkpoints_text(const RunStatus& status) {
  if (status.checkpoints.empty()) return "none";
  return std::to_string(status.checkpoints.size()) + " (" + size_text(bytes_of(status.checkpoints)) +
         "), the newest " + status.checkpoints.back().name;
}

// A damaged file says nothing.
std::string uploads_in(const std::string& run_dir) {
  const std::string path = path_in_run(run_dir, kUploadsFile);
  if (!PosixDisk().exists(path)) return "null";
  const Json uploads = parse_json<Json>(text_of_file(path, kMostTextBytes), nullptr, false);
  return uploads.is_object() ? uploads.dump() : "null";
}

std::string uploads_text(const Json& uploads) {
  const auto waiting = uploads.find("waiting");
  const std::size_t left = waiting != uploads.end() && waiting->is_array() ? waiting->size() : 0;
  const std::string newest = text_member(uploads, "newest"), problem = text_member(uploads, "problem");
  return text_member(uploads, "folder") + ": the newest is " + (newest.empty() ? "none" : newest) +
         (left > 0 ? ", " + std::to_string(left) + " not uploaded" : "") +
         (problem.empty() ? "" : "; " + problem);
}

}  // namespace

RunStatus status_of(const std::string& run_dir) try {
  const PosixDisk disk;
  require_run_folder(run_dir);
  RunStatus status{.run_dir = run_dir, .ending = ending_of(disk, run_dir)};
  read_recipe_facts(status);
  status.metrics = RunMetrics::read(
      path_in_run(run_dir, kMetricsFile), std::numeric_limits<int64_t>::max(),
      [recipe = status.recipe](const std::string& metric) { return less_is_better(recipe, metric); });
  const bool diverged = status.metrics.step > 0 && !std::isfinite(status.metrics.figure("loss"));
  if (diverged && status.ending.condition == RunCondition::kEnded) {
    status.ending.condition = RunCondition::kFailed;
    status.ending.reason = "its loss is not finite in the end; " + status.ending.reason;
  }
  status.changed_unix_s = changed_unix_s(run_dir + '/' + kMetricsFile);
  status.checkpoints = checkpoint_summaries(disk, status.checkpoints_folder);
  if (!status.checkpoints.empty() && status.checkpoints.back().step > status.metrics.step) {  // lost lines
    status.metrics.step = status.checkpoints.back().step;
    status.metrics.epoch = status.checkpoints.back().epoch;
  }
  status.uploads = uploads_in(run_dir);
  status.journal_bytes = bytes_below(path_in_run(run_dir, "journal"));
  status.bytes = bytes_below(run_dir);
  if (!status.checkpoints_folder.starts_with(run_dir + '/')) status.bytes += bytes_of(status.checkpoints);
  return status;
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

std::string RunStatus::json() const {
  Json metrics_of = Json::object();
  for (const auto& metric : metrics.evaluated)
    metrics_of[metric.name] = {{"last", metric.last}, {"best", metric.best}, {"best_step", metric.best_step}};
  Json checkpoints_of = Json::array();
  for (const auto& checkpoint : checkpoints)
    checkpoints_of.push_back(
        {{"name", checkpoint.name}, {"step", checkpoint.step}, {"bytes", checkpoint.bytes}});
  Json figures = Json::object();
  for (const auto& [figure, value] : metrics.figures) figures[figure] = value;
  const Json all{{"run_dir", run_dir},
                 {"state", name(ending.condition)},
                 {"reason", ending.reason},
                 {"step", metrics.step},
                 {"epoch", metrics.epoch},
                 {"max_duration", max_duration},
                 {"newest_step", figures},
                 {"metrics", metrics_of},
                 {"checkpoints_folder", checkpoints_folder},
                 {"checkpoints", checkpoints_of},
                 {"uploads", Json::parse(uploads)},
                 {"journal_bytes", journal_bytes},
                 {"bytes", bytes},
                 {"result", Json::parse(ending.result)}};
  // Names of folders may be no UTF-8.
  return without_raw_controls(all.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string status_text(const RunStatus& status, int64_t now_unix_s) {
  std::string text =
      status.run_dir + ": " + name(status.ending.condition) + ", " + status.ending.reason + '\n';
  add_row(text, "steps", progress_text(status));
  if (status.changed_unix_s > 0) add_row(text, "last step", age_text(now_unix_s - status.changed_unix_s));
  for (const char* figure : {"loss", "lr", "samples_per_s"})
    if (const double value = status.metrics.figure(figure); !std::isnan(value))
      add_row(text, figure, number_text(value));
  for (const auto& metric : single_metrics(status.metrics.evaluated))
    add_row(text, metric.name,
            number_text(metric.last) + "  (best " + number_text(metric.best) + ", step " +
                std::to_string(metric.best_step) + ")");
  for (const auto& [matrix, cells] : matrix_lines(status.metrics.evaluated)) add_row(text, matrix, cells);
  add_row(text, "checkpoints", checkpoints_text(status));
  if (const Json uploads = Json::parse(status.uploads); uploads.is_object())
    add_row(text, "uploads", uploads_text(uploads));
  if (status.journal_bytes > 0) add_row(text, "journal", size_text(status.journal_bytes));
  add_row(text, "all files", size_text(status.bytes));
  return text;
}

namespace {

// Nothing if the folder is no run. An unreadable folder may be a run.
std::optional<RunStatus> run_at(const std::string& path) try {
  std::error_code error;
  if (!fs::is_directory(path, error) || !is_run_folder(path)) return std::nullopt;
  return status_of(path);
} catch (const UserError& error) {
  return RunStatus{.run_dir = path, .ending = {RunCondition::kDamaged, error.headline()}};
} catch (const std::bad_alloc&) {
  return RunStatus{.run_dir = path, .ending = {RunCondition::kDamaged, "its files are too large to read"}};
}

// None where the folder cannot be read.
std::vector<std::string> stages_at(const std::string& path) try {
  return stage_runs(path);
} catch (const UserError&) {
  return {};
}

}  // namespace

std::vector<RunStatus> runs_below(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw UserError(folder + ": there is no such folder");
  std::vector<RunStatus> runs;
  if (auto run = run_at(folder)) return {std::move(*run)};
  const auto add = [&runs](const std::string& path) {
    if (auto run = run_at(path)) runs.push_back(std::move(*run));
  };
  for (const std::string& name : PosixDisk().list(folder)) {
    const std::string path = (fs::path(folder) / name).string();
    add(path);
    std::ranges::for_each(stages_at(path), add);
  }
  return runs;
}

std::string last_step_text(const RunStatus& run, int64_t now_unix_s) {
  const std::string age = run.changed_unix_s > 0 ? age_text(now_unix_s - run.changed_unix_s) : "-";
  return run.ending.condition == RunCondition::kEnded && run.ending.result == "{}"
             ? age + "; " + run.ending.reason
             : age;
}

}  // namespace tutti

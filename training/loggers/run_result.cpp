#include "training/loggers/run_result.h"

#include <cmath>
#include <cstdio>
#include <span>

#include "io/json/json_line.h"
#include "io/run_paths.h"
#include "runtime/text.h"

namespace tutti {
namespace {

const char* name(TrainingEnd why) {
  switch (why) {
    case TrainingEnd::kMaxDuration:
      return "max_duration";
    case TrainingEnd::kStopTraining:
      return "stop_training";
    case TrainingEnd::kRequest:
      return "request";
    case TrainingEnd::kStopAt:
      return "stop_at";
    case TrainingEnd::kNothingLeft:
      return "nothing_left";
  }
  return "";
}

std::string metric_text(const EvaluatedMetric& metric) {
  const std::string text = formatted("%.4f", without_nan_sign(metric.last));
  if (std::isnan(metric.best)) return text;
  if (metric.best == metric.last) return text + "  (the best)";
  return text + formatted("  (best %.4f, step %lld)", metric.best, static_cast<long long>(metric.best_step));
}

std::string metrics_json(const std::vector<EvaluatedMetric>& metrics) {
  JsonFields fields;
  for (const auto& metric : metrics)
    fields.emplace_back(
        metric.name,
        JsonText{json_line({{"last", metric.last}, {"best", metric.best}, {"best_step", metric.best_step}})});
  return json_line(fields);
}

}  // namespace

void write_result(Disk& disk, const std::string& run_dir, const std::string& json, const Warn& warn) try {
  if (!disk.exists(run_dir)) return;  // the run ends because somebody moved or removed the folder
  const std::string path = run_dir + '/' + kResultFile;
  if (json.empty()) return disk.remove_all(path);
  const std::string unfinished = path + ".unfinished";
  const auto file = disk.open(unfinished, /*truncate=*/true);
  const std::string line = json + "\n";
  file->append(std::as_bytes(std::span(line)));
  file->close();
  disk.rename(unfinished, path);
} catch (const std::exception& error) {
  warn(error.what());
}

void leave_error(Disk& disk, const std::string& run_dir, const std::string& reason, bool print,
                 const Warn& warn) {
  const std::string json = json_line({{"ended", std::string("error")}, {"reason", reason}});
  if (print) {
    std::puts(json.c_str());
    std::fflush(stdout);
  }
  write_result(disk, run_dir, json, warn);
}

std::string duration_text(double s) {
  const auto whole = static_cast<long long>(std::lround(s));
  if (whole < 3600) return formatted("%lld:%02lld", whole / 60, whole % 60);
  return formatted("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string rate_text(double rate) { return formatted(rate < 100 ? "%.3g" : "%.0f", rate); }

std::string RunResult::ending() const {
  switch (ended.why) {
    case TrainingEnd::kMaxDuration: {
      const bool changed = ended.max_duration.text() != start.max_duration.text();
      return "max_duration of " + ended.max_duration.text() + " is reached" +
             (changed ? " (" + start.max_duration.text() + " at the start)" : "");
    }
    case TrainingEnd::kStopTraining:
      return ended.stop_reason.empty() ? "stopped by an algorithm or callback" : ended.stop_reason;
    case TrainingEnd::kRequest:
      return "asked to stop; continue with --resume auto";
    case TrainingEnd::kStopAt:
      return "train.stop_at is reached; --resume auto with a later one, or 0ba, trains on";
    case TrainingEnd::kNothingLeft:
      return "nothing left to train: the checkpoint is at the end";
  }
  return "";
}

std::string RunResult::reason() const {
  const int64_t steps = at.batch - start.step;
  if (ended.skipped_at_end > 0)
    return ending() + "; the last " + std::to_string(ended.skipped_at_end) +
           " steps were all skipped: nothing finite to train on; exit code 4";
  if (2 * ended.skipped_steps <= steps) return ending();
  return ending() + "; " + std::to_string(ended.skipped_steps) + " of " + std::to_string(steps) +
         " steps were skipped: nothing finite to train on";
}

std::vector<std::pair<std::string, std::string>> RunResult::rows() const {
  std::vector<std::pair<std::string, std::string>> rows = {{"ended", reason()}};
  const auto add = [&rows](const std::string& label, const std::string& value) {
    rows.emplace_back(label, value);
  };
  double epochs = static_cast<double>(at.epoch);
  if (start.dataloader_len > 0)
    epochs += static_cast<double>(at.batch_in_epoch) / static_cast<double>(start.dataloader_len);
  std::string steps = std::to_string(at.batch) + formatted(" (%.4g epoch%s)", epochs, epochs == 1 ? "" : "s");
  if (ended.skipped_steps > 0) steps += ", " + std::to_string(ended.skipped_steps) + " of them skipped";
  add("steps", steps);
  add("time", wall_s < 60 ? formatted("%.1f s", wall_s) : duration_text(wall_s));
  if (last) add("loss", formatted("%.6g", static_cast<float>(without_nan_sign(last->loss))));
  const std::vector<EvaluatedMetric> single = single_metrics(metrics.evaluated);
  std::vector<std::string> names;
  for (const auto& metric : single) names.push_back(metric.name);
  for (const auto& metric : single) add(display_name(metric.name, names), metric_text(metric));
  for (const auto& [matrix, text] : matrix_lines(metrics.evaluated)) add(display_name(matrix, names), text);
  if (samples_per_s > 0) add("samples/s", rate_text(samples_per_s));
  add("checkpoint", checkpoint.empty() ? "none" : checkpoint);
  add("metrics", start.run_dir + "/" + kMetricsFile);
  add("logs", start.run_dir + "/log");
  return rows;
}

// A process without steps reads the loss of the run's last step from metrics.jsonl.
std::string RunResult::json() const {
  JsonFields fields = {{"ended", std::string(name(ended.why))},
                       {"reason", reason()},
                       {"steps", at.batch},
                       {"epochs", at.epoch},
                       {"skipped_steps", ended.skipped_steps},
                       {"seconds", wall_s}};
  if (ended.skipped_at_end > 0) fields.emplace_back("skipped_at_end", ended.skipped_at_end);
  const double loss = last ? last->loss : metrics.figure("loss");
  if (last || !std::isnan(loss)) fields.emplace_back("loss", loss);
  if (samples_per_s > 0) fields.emplace_back("samples_per_s", samples_per_s);
  fields.emplace_back("metrics", JsonText{metrics_json(metrics.evaluated)});
  fields.emplace_back("checkpoint", checkpoint);
  fields.emplace_back("run_dir", start.run_dir);
  return json_line(fields);
}

}  // namespace tutti

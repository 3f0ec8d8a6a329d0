#include "training/loggers/metrics_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "io/json/json_line.h"
#include "runtime/probe/probe.h"
#include "runtime/text.h"

namespace tutti {
namespace {

bool is_evaluation(const std::string& line) {
  return line.find("\"metrics/") != std::string::npos && line.find("\"lr\": ") == std::string::npos;
}

// Identifies a metric's value after a step.
std::string evaluation_key(int64_t step, const std::string& name, double value) {
  char text[64];
  std::snprintf(text, sizeof text, " %.17g", without_nan_sign(value));
  return std::to_string(step) + " " + name + text;
}

int64_t step_of(const std::string& line) { return json_integer(line, "step", -1); }

JsonFields fields_at(int64_t step, const LogTime& time) { return {{"step", step}, {"epoch", time.epoch()}}; }

}  // namespace

MetricsFile::MetricsFile(Disk& disk, const Clock& clock, const std::string& run_dir, double started_s,
                         Warn warn)
    : clock_(clock),
      started_s_(started_s),
      warn_(std::move(warn)),
      lines_(disk, run_dir + "/metrics.jsonl", step_of, warn_) {}

void MetricsFile::open(const LogStart& start) try {
  if (start.resumes)
    resume(start.step);
  else
    lines_.begin();
} catch (const std::exception& error) {
  lines_.begin();
  warn_("metrics.jsonl begins anew, beside the earlier one: " + std::string(error.what()));
}

void MetricsFile::resume(int64_t step) {
  int64_t last = 0;
  for (const std::string& line : lines_.resume(step)) {
    last = std::max(last, step_of(line));
    if (!is_evaluation(line) || step_of(line) != step) continue;
    for (const auto& key : json_keys(line))
      if (key.starts_with("metrics/"))
        evaluated_before_.insert(evaluation_key(step, key, json_number(line, key)));
  }
  if (last == 0 || last >= step) return;
  TUTTI_PROBE("metrics: lines before the resumed step are missing");
  warn_(lines_.path() + ": the lines of steps " + std::to_string(last + 1) + " to " + std::to_string(step) +
        " are missing");
}

void MetricsFile::log_metrics(const LoggedMetrics& metrics, const LogTime&) {
  for (const auto& [name, value] : metrics) collect(name, value);
}

void MetricsFile::log_traces(const LoggedTraces& traces, const LogTime&) {
  for (const auto& [name, ran] : traces) collect(name, ran);
}

void MetricsFile::collect(const std::string& name, double value) {
  const auto [index, fresh] = indices_.try_emplace(name, collected_.size());
  if (fresh)
    collected_.emplace_back(name, value);
  else
    collected_[index->second].second = value;
}

void MetricsFile::write_collected(const LogTime& time) {
  if (collected_.empty()) return;
  indices_.clear();
  JsonFields fields = fields_at(time.at.batch, time);
  for (const auto& [name, value] : std::exchange(collected_, {})) fields.emplace_back(name, value);
  lines_.append(json_line(fields));
}

void MetricsFile::log_step(const StepReport& report, const LogTime& time) {
  JsonFields fields = fields_at(time.step, time);
  const auto add = [&](const char* name, JsonValue value) { fields.emplace_back(name, std::move(value)); };
  add("loss", static_cast<float>(report.loss));
  add("lr", report.lr);
  add("step_ms", static_cast<float>(report.step_ms));
  add("data_wait_ms", static_cast<float>(report.data_wait_ms));
  add("data_read_ms", static_cast<float>(report.data_read_ms));
  add("data_disk_ms", static_cast<float>(report.data_disk_ms));
  add("samples_per_s", static_cast<float>(report.samples_per_s));
  add("grad_accum", static_cast<int64_t>(report.grad_accum));
  add("memory_peak_mb", static_cast<float>(report.memory_peak_mb));
  for (const auto& [name, value] : report.metrics) fields.emplace_back(name, value);
  const bool first = std::exchange(first_, false);
  if (first) add("since_start_s", 1e-3 * static_cast<double>(clock_.unix_ms()) - started_s_);
  lines_.append(json_line(fields));
  if (first) lines_.flush();
}

void MetricsFile::log_evaluation(const LoggedMetrics& metrics, const LogTime& time) {
  JsonFields fields = fields_at(time.at.batch, time);
  const std::size_t empty_size = fields.size();
  for (const auto& [name, value] : metrics)
    if (!evaluated_before_.contains(evaluation_key(time.at.batch, name, value)))
      fields.emplace_back(name, value);
  if (fields.size() < empty_size + metrics.size())
    TUTTI_PROBE("metrics: an evaluation was logged by the attempt before");
  if (fields.size() > empty_size || metrics.empty()) lines_.append(json_line(fields));
}

bool MetricsFile::finish(bool) {
  lines_.finish();
  return true;
}

}  // namespace tutti

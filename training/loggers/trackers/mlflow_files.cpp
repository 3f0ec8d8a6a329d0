#include "training/loggers/trackers/mlflow_files.h"

#include <filesystem>
#include <sstream>

#include "io/http/http_client.h"
#include "io/json/json_line.h"
#include "io/replaced_file.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/text.h"
#include "training/loggers/file_logger.h"
#include "training/loggers/trackers/tracked_names.h"

namespace tutti {
namespace {

constexpr int kRunning = 1, kFinished = 3, kFailed = 4;  // mlflow.entities.RunStatus
constexpr int kLocal = 4;                                // mlflow.entities.SourceType
constexpr std::size_t kFlushPointsBytes = 1 << 20, kMostUnwrittenPoints = 16 << 20;
constexpr uint64_t kMostMeta = 1 << 16;  // bytes
constexpr const char* kDefaultExperiment = "Default";

// A text in YAML, which has JSON's texts.
std::string yaml_text(const std::string& text) { return tracked_json(Hyperparameter(text)); }

std::string uri_of(const std::string& path) {
  std::string uri = "file://";
  std::istringstream parts(plain_path(path).substr(1));
  for (std::string part; std::getline(parts, part, '/');) uri += "/" + url_part(part);
  return uri;
}

// The part of a metric's file up to `step`, without a torn line.
std::string lines_until(const std::string& file, int64_t step, std::optional<int64_t>& last) {
  std::string kept;
  std::istringstream lines(file);
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    const int64_t at = std::strtoll(line.c_str() + line.rfind(' ') + 1, nullptr, 10);
    if (at > step) continue;
    kept += line + "\n";
    last = at;
  }
  return kept;
}

}  // namespace

void MlflowFiles::open(const LogStart& start) {
  start_ = start;
  root_ = logged_path(start, root_);
  ids_ = MlflowIds::load(disk_, start, root_, clock_.unix_ms());
  if (ids_.run_id.empty()) {
    ids_.run_id = ids_.nonce;
    ids_.experiment_id = experiment_id();
    ids_.save(disk_, start);
  }
  folder_ = experiment_folder(ids_.experiment_id) + "/" + ids_.run_id;
  for (const char* part : {"metrics", "params", "tags", "artifacts"})
    disk_.make_folders(folder_ + "/" + part);
  const std::string meta = experiment_folder(ids_.experiment_id) + "/meta.yaml";
  const std::string now = std::to_string(ids_.start_ms);
  if (!disk_.exists(meta))
    replace_file(disk_, meta,
                 "artifact_location: " + yaml_text(uri_of(experiment_folder(ids_.experiment_id))) +
                     "\ncreation_time: " + now + "\nexperiment_id: " + yaml_text(ids_.experiment_id) +
                     "\nlast_update_time: " + now +
                     "\nlifecycle_stage: active\nname: " + yaml_text(run_.experiment) + "\n");
  write_run(kRunning, 0);
  write("tags/mlflow.runName", run_.name.empty() ? start.run_name : run_.name);
  write("tags/mlflow.user", run_.user);
  write("tags/mlflow.source.name", "tutti");
  write("tags/mlflow.source.type", "LOCAL");
  for (const auto& [name, value] : run_.tags) write("tags/" + name, value);
}

// Runs that start at the same time choose the same id.
std::string MlflowFiles::experiment_id() const {
  if (run_.experiment == kDefaultExperiment) return "0";
  const std::string line = "\nname: ";
  for (const std::string& id : disk_.list(root_)) {
    const std::string meta = experiment_folder(id) + "/meta.yaml";
    if (id.find_first_not_of("0123456789") != std::string::npos || !disk_.exists(meta)) continue;
    const std::string text = "\n" + disk_.read_text(meta, kMostMeta) + "\n";
    for (const std::string& name : {run_.experiment, yaml_text(run_.experiment), "'" + run_.experiment + "'"})
      if (text.find(line + name + "\n") != std::string::npos) return id;
  }
  StreamedHash hash;
  hash.add(std::as_bytes(std::span(run_.experiment)));
  return std::to_string(100'000'000'000'000'000 + hash.value() % 900'000'000'000'000'000);
}

void MlflowFiles::write_run(int status, int64_t end_ms) {
  const std::string name = run_.name.empty() ? start_.run_name : run_.name;
  write("meta.yaml",
        "artifact_uri: " + yaml_text(uri_of(folder_ + "/artifacts")) +
            "\nend_time: " + (end_ms > 0 ? std::to_string(end_ms) : "null") +
            "\nentry_point_name: ''\nexperiment_id: " + yaml_text(ids_.experiment_id) +
            "\nlifecycle_stage: active\nrun_id: " + ids_.run_id + "\nrun_name: " + yaml_text(name) +
            "\nsource_name: ''\nsource_type: " + std::to_string(kLocal) +
            "\nsource_version: ''\nstart_time: " + std::to_string(ids_.start_ms) +
            "\nstatus: " + std::to_string(status) + "\ntags: []\nuser_id: " + yaml_text(run_.user) + "\n");
}

template <class Work>
void MlflowFiles::attempt(const Work& work) try {
  work();
  is_broken_ = false;
} catch (const OperatingError& error) {
  fail(error.what());
}

void MlflowFiles::fail(const std::string& why) {
  if (!is_broken_) warn_(why);
  is_broken_ = true;
}

void MlflowFiles::write(const std::string& path, const std::string& bytes) {
  attempt([&] {
    const std::filesystem::path whole = folder_ + "/" + path;
    disk_.make_folders(whole.parent_path());
    replace_file(disk_, whole, bytes);
  });
}

void MlflowFiles::log_params(const MlflowParams& params, const LogTime&) {
  for (const auto& [name, value] : params) write("params/" + name, value);
}

void MlflowFiles::log_artifact(const std::string& path, const std::string& bytes, const LogTime&) {
  write("artifacts/" + path, bytes);
}

// A resumed run may repeat the evaluation of its first step.
void MlflowFiles::log_metrics(const LoggedMetrics& metrics, const LogTime& time) {
  const std::string now = std::to_string(clock_.unix_ms());
  for (const auto& [name, value] : metrics) {
    Metric& metric = metrics_[name];
    if (!metric.is_open) try {
        open_metric(name, metric);
      } catch (const OperatingError& error) {
        fail(error.what());
      }
    if (metric.last && *metric.last >= time.at.batch) continue;
    const std::string line = now + " " + tracked_number(value) + " " + std::to_string(time.at.batch) + "\n";
    if (unwritten_ + line.size() > kMostUnwrittenPoints) {
      ++dropped_;
      continue;
    }
    metric.unwritten += line;
    unwritten_ += line.size();
  }
  if (unwritten_ >= kFlushPointsBytes) write_points(/*sync=*/false);
}

void MlflowFiles::open_metric(const std::string& name, Metric& metric) {
  const std::filesystem::path path = folder_ + "/metrics/" + name;
  disk_.make_folders(path.parent_path());
  std::string kept;
  if (start_.resumes && disk_.exists(path)) {
    const auto bytes = disk_.read(path);
    kept = lines_until({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, start_.at.batch,
                       metric.last);
  }
  replace_file(disk_, path, kept);
  metric.written = kept.size();
  metric.is_open = true;
}

void MlflowFiles::flush(bool sync) {
  if (sync || seconds(clock_.now() - flushed_) >= flush_seconds_) write_points(sync);
}

void MlflowFiles::write_metric(const std::string& name, Metric& metric, bool sync) {
  if (metric.unwritten.empty()) return;
  if (!metric.is_open) open_metric(name, metric);
  const auto file = disk_.open(folder_ + "/metrics/" + name, /*truncate=*/false);
  file->write_at(metric.written, std::as_bytes(std::span(metric.unwritten)));
  if (sync) file->sync();
  metric.written += metric.unwritten.size();
  unwritten_ -= std::exchange(metric.unwritten, {}).size();
}

// A metric that cannot be written hinders no other.
void MlflowFiles::write_points(bool sync) {
  flushed_ = clock_.now();
  std::string trouble;
  for (auto& [name, metric] : metrics_) {
    try {
      write_metric(name, metric, sync);
    } catch (const OperatingError& error) {
      trouble = error.what();
    }
  }
  if (trouble.empty())
    is_broken_ = false;
  else
    fail(trouble);
}

bool MlflowFiles::finish(bool) {
  write_points(/*sync=*/true);
  if (unwritten_ + dropped_ > 0) warn_(folder_ + " lacks points, for which there was no room");
  write_run(is_failed_ ? kFailed : kFinished, clock_.unix_ms());
  return true;
}

void MlflowFiles::fail_run() {
  if (folder_.empty()) return;
  mark_failed();
  finish(/*late=*/true);
}

}  // namespace tutti

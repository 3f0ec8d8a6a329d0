#include "training/loggers/trackers/mlflow_server.h"

#include <algorithm>
#include <filesystem>

#include "io/json/json_line.h"
#include "io/replaced_file.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr auto kFailsWithin = std::chrono::seconds(3);
constexpr double kLeastRetrySeconds = 1, kMostRetrySeconds = 60;

int64_t step_of_record(const std::string& line) { return json_integer(line, "step", -1); }

std::string record_without_time(std::string line) {
  return json_without(line, [](const std::string& key) { return key == "time"; });
}

template <class Pairs>
JsonText json_of_pairs(const Pairs& pairs) {
  JsonFields fields;
  for (const auto& [name, value] : pairs) fields.emplace_back(name, value);
  return {json_line(fields)};
}

}  // namespace

MlflowUpload::MlflowUpload(std::unique_ptr<HttpClient> http, std::unique_ptr<MlflowSender> sender,
                           double interval_s)
    : http_(std::move(http)),
      sender_(std::move(sender)),
      interval_s_(interval_s),
      thread_([this] { run(); }) {}

void MlflowUpload::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  http_->cancel();
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// The first call follows at once: a run shows up when it begins.
void MlflowUpload::run() {
  double wait_s = 0, retry_s = kLeastRetrySeconds;
  std::unique_lock lock(mutex_);
  while (!stops_ && !is_finished_) {
    changed_.wait_for(lock, std::chrono::duration<double>(wait_s), [this] { return stops_ || is_last_; });
    const bool is_last = is_last_, failed = run_failed_;
    if (stops_) return;
    lock.unlock();
    const bool is_sent = is_last ? sender_->finish(failed) : sender_->send_all();
    lock.lock();
    is_finished_ = is_last;
    wait_s = is_sent ? interval_s_ : retry_s;
    retry_s = is_sent ? kLeastRetrySeconds : std::min(2 * retry_s, kMostRetrySeconds);
  }
}

bool MlflowUpload::finished(bool run_failed) {
  const std::lock_guard lock(mutex_);
  run_failed_ = run_failed;
  is_last_ = true;
  changed_.notify_all();
  return is_finished_;
}

MlflowServer::MlflowServer(Disk& disk, const Clock& clock, Warn warn, std::unique_ptr<HttpClient> http,
                           Options options)
    : disk_(disk),
      clock_(clock),
      warn_(warn),
      http_(std::move(http)),
      options_(std::move(options)),
      lines_(disk, {.filename = kMlflowRecords}, {step_of_record, record_without_time}, std::move(warn)) {}

void MlflowServer::open(const LogStart& start) {
  folder_ = start.run_dir;
  lines_.open(start);
  MlflowIds ids = MlflowIds::load(disk_, start, options_.uri, clock_.unix_ms());
  ids.sent = std::min(ids.sent, static_cast<int64_t>(disk_.size(folder_ + "/" + kMlflowRecords)));
  ids.save(disk_, start);
  if (!http_) return;
  MlflowRun run = options_.run;
  if (run.name.empty()) run.name = start.run_name;
  auto sender = std::make_unique<MlflowSender>(disk_, clock_, warn_, *http_, options_.uri, std::move(run),
                                               start, std::move(ids));
  upload_ = std::make_unique<MlflowUpload>(std::move(http_), std::move(sender), options_.interval_s);
}

void MlflowServer::line(const LogTime& time, const char* what, JsonValue value) {
  lines_.append(json_line(
      {{"step", time.step}, {"batch", time.at.batch}, {"time", clock_.unix_ms()}, {what, std::move(value)}}));
  lines_.step_end();
}

void MlflowServer::log_metrics(const LoggedMetrics& metrics, const LogTime& time) {
  line(time, "metrics", json_of_pairs(metrics));
}

void MlflowServer::log_params(const MlflowParams& params, const LogTime& time) {
  line(time, "params", json_of_pairs(params));
}

void MlflowServer::log_artifact(const std::string& path, const std::string& bytes, const LogTime& time) try {
  const std::filesystem::path whole = folder_ + "/" + kMlflowArtifacts + "/" + path;
  disk_.make_folders(whole.parent_path());
  replace_file(disk_, whole, bytes);
  line(time, "artifact", path);
} catch (const OperatingError& error) {
  warn_(error.what());
}

bool MlflowServer::finish(bool late) {
  lines_.finish();
  if (!upload_ || (!upload_->finished(is_failed_) && !late)) return !upload_;
  upload_->stop();
  if (const int64_t unsent = upload_->unsent(); unsent > 0)
    warn_(options_.uri + " lacks " + std::to_string(unsent) + " records, which are in " + folder_ + "/" +
          kMlflowRecords + ": `tutti train --resume auto` sends them");
  upload_.reset();
  return true;
}

void MlflowServer::fail_run() {
  if (!upload_) return;
  const auto until = std::chrono::steady_clock::now() + kFailsWithin;
  while (!upload_->finished(/*run_failed=*/true) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  upload_->stop();
}

}  // namespace tutti

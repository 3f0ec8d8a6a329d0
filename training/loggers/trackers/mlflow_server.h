#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "io/http/http_client.h"
#include "io/json/json_line.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "training/loggers/file_logger.h"
#include "training/loggers/trackers/mlflow_sender.h"
#include "training/loggers/trackers/mlflow_store.h"

namespace tutti {

// Calls a MlflowSender on a thread of its own, until the run ends. While the server takes nothing, the calls
// are repeated after one second, two, four, up to a minute.
class MlflowUpload {
 public:
  // `interval_s`: between requests.
  MlflowUpload(std::unique_ptr<HttpClient> http, std::unique_ptr<MlflowSender> sender, double interval_s);
  ~MlflowUpload() { stop(); }

  // Asks for the rest to be sent, and for the run to end. True once the rest is sent, or a request has
  // failed.
  bool finished(bool run_failed);
  void stop();                                          // ends the current request and the thread
  int64_t unsent() const { return sender_->unsent(); }  // once stopped

 private:
  void run();

  std::unique_ptr<HttpClient> http_;
  std::unique_ptr<MlflowSender> sender_;
  double interval_s_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false, is_last_ = false, is_finished_ = false,
       run_failed_ = false;  // under the mutex
  std::thread thread_;
};

// A run on a tracking server. All records go into files of the run folder first (mlflow/), so that a server
// without an answer costs no record: a resumed run sends the rest.
class MlflowServer final : public MlflowStore {
 public:
  struct Options {
    std::string uri;  // "http://host:5000"
    MlflowRun run;
    double interval_s = 10;
  };

  // `http`: null sends nothing.
  MlflowServer(Disk& disk, const Clock& clock, Warn warn, std::unique_ptr<HttpClient> http, Options options);

  void open(const LogStart& start) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_params(const MlflowParams& params, const LogTime& time) override;
  void log_artifact(const std::string& path, const std::string& bytes, const LogTime& time) override;
  void flush(bool sync) override { lines_.flush(sync); }
  bool finish(bool late) override;
  void fail_run() override;

 private:
  void line(const LogTime& time, const char* what, JsonValue value);

  Disk& disk_;
  const Clock& clock_;
  Warn warn_;
  std::unique_ptr<HttpClient> http_;
  Options options_;
  FileLines lines_;
  std::string folder_;  // of the run
  std::unique_ptr<MlflowUpload> upload_;
};

}  // namespace tutti

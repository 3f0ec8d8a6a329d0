#pragma once

#include <map>
#include <optional>
#include <string>

#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "training/loggers/trackers/mlflow_store.h"

namespace tutti {

// A run in MLflow's file store: ROOT/EXPERIMENT/RUN/{meta.yaml, metrics/NAME, params/NAME, tags/NAME,
// artifacts/}. In a resumed run the points of later steps than the checkpoint's are cut off.
class MlflowFiles final : public MlflowStore {
 public:
  // `root`: logged_path's pattern. `flush_seconds`: time between writes; a checkpoint writes all.
  MlflowFiles(Disk& disk, const Clock& clock, std::string root, MlflowRun run, double flush_seconds,
              Warn warn)
      : disk_(disk),
        clock_(clock),
        root_(std::move(root)),
        run_(std::move(run)),
        flush_seconds_(flush_seconds),
        warn_(std::move(warn)) {}

  void open(const LogStart& start) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_params(const MlflowParams& params, const LogTime& time) override;
  void log_artifact(const std::string& path, const std::string& bytes, const LogTime& time) override;
  void flush(bool sync) override;
  bool finish(bool late) override;
  void fail_run() override;

 private:
  struct Metric {
    std::string unwritten;
    bool is_open = false;
    uint64_t written = 0;         // bytes
    std::optional<int64_t> last;  // step, of an earlier attempt
  };

  std::string experiment_folder(const std::string& id) const { return root_ + "/" + id; }
  std::string experiment_id() const;
  void write_run(int status, int64_t end_ms);
  void fail(const std::string& why);  // warns of the first of failures in a row
  void write_points(bool sync);
  void open_metric(const std::string& name, Metric& metric);
  void write_metric(const std::string& name, Metric& metric, bool sync);
  void write(const std::string& path, const std::string& bytes);
  template <class Work>
  void attempt(const Work& work);

  Disk& disk_;
  const Clock& clock_;
  std::string root_;
  MlflowRun run_;
  double flush_seconds_;
  Warn warn_;
  LogStart start_;
  MlflowIds ids_;
  std::string folder_;  // of the run
  TimePoint flushed_{};
  std::map<std::string, Metric> metrics_;
  std::size_t unwritten_ = 0;  // bytes
  int64_t dropped_ = 0;        // points
  bool is_broken_ = false;     // a write failed and was reported
};

}  // namespace tutti

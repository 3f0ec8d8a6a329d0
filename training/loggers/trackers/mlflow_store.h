#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/disk.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

// A run of MLflow, as the recipe and the environment name it.
struct MlflowRun {
  std::string experiment, name, user;  // name: "" = the run's
  std::vector<std::pair<std::string, std::string>> tags;
};

using MlflowParams = std::vector<std::pair<std::string, std::string>>;

// Where a run of MLflow is kept. The names are MLflow's already. The calls come in the order of a
// LoggerDestination's, on one thread.
class MlflowStore {
 public:
  virtual ~MlflowStore() = default;
  virtual void open(const LogStart& start) = 0;
  virtual void log_metrics(const LoggedMetrics& metrics, const LogTime& time) = 0;
  virtual void log_params(const MlflowParams& params, const LogTime& time) = 0;
  // A file; `path` is relative to the run's artifacts.
  virtual void log_artifact(const std::string& path, const std::string& bytes, const LogTime& time) = 0;
  virtual void flush(bool sync) = 0;
  virtual bool finish(bool late) = 0;  // as LoggerDestination::finish
  // Ends the run as failed, within a few seconds. Throws nothing.
  virtual void fail_run() = 0;
  void mark_failed() { is_failed_ = true; }  // `finish` then ends the run as failed

 protected:
  bool is_failed_ = false;
};

// The ids of a run, in the run folder: a resumed run continues the same run of MLflow.
struct MlflowIds {
  std::string tracking_uri;
  std::string nonce;  // of the run's tag "tutti.id"
  std::string experiment_id, run_id;
  int64_t start_ms = 0;  // unix time, of the first attempt
  int64_t sent = 0;      // bytes of the records that a server has

  // The ids that a resumed run finds; new ids, without those of MLflow, for another tracking_uri.
  static MlflowIds load(Disk& disk, const LogStart& start, const std::string& tracking_uri, int64_t unix_ms);
  void save(Disk& disk, const LogStart& start) const;  // throws OperatingError
};

inline constexpr const char* kMlflowFolder = "mlflow";  // in the run folder
inline constexpr const char* kMlflowNonceTag = "tutti.id";

}  // namespace tutti

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/http/http_client.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "training/loggers/trackers/mlflow_api.h"
#include "training/loggers/trackers/mlflow_store.h"

namespace tutti {

// The files of a run that wait for a tracking server, in the run folder.
inline constexpr const char* kMlflowRecords = "mlflow/records.jsonl";
inline constexpr const char* kMlflowArtifacts = "mlflow/artifacts";

// Sends the records of a run to a tracking server, in the order of the file of records, each once.
class MlflowSender {
 public:
  // `ids`: of this run.
  MlflowSender(Disk& disk, const Clock& clock, Warn warn, HttpClient& http, std::string uri, MlflowRun run,
               const LogStart& start, MlflowIds ids);

  // Sends all whole lines of the file. False if the server did not take them: later calls continue. Warns of
  // the first failure.
  bool send_all();
  // The same, and marks the run as finished, or as failed.
  bool finish(bool failed);
  int64_t unsent() const;  // records

 private:
  template <class Work>
  bool attempt(const Work& work);
  bool send_records();
  bool open();
  bool send_lines(const std::string& lines);
  bool send_points(const std::vector<MlflowPoint>& points);
  bool send_params(const std::string& json);
  bool send_artifact(const std::string& path);
  // True if the next request may follow: the request succeeded, or was refused, which costs its records.
  bool passed(const MlflowReply& reply, const std::string& what);
  void fail(const MlflowReply& reply, const std::string& what);
  std::string next_lines() const;

  Disk& disk_;
  const Clock& clock_;
  Warn warn_;
  std::string uri_;
  MlflowRun run_;
  LogStart start_;
  MlflowIds ids_;
  MlflowKnown known_;
  MlflowApi api_;
  std::string records_, artifacts_;  // paths
  bool is_open_ = false;
  bool is_failing_ = false;  // and a warning said so
  bool is_refusal_told_ = false, is_proxy_told_ = false, is_change_told_ = false, is_repeat_told_ = false;
};

}  // namespace tutti

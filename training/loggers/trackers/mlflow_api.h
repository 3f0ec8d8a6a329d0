#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/http/http_client.h"
#include "training/loggers/trackers/mlflow_store.h"

namespace tutti {

// How a request to a server ended.
struct MlflowReply {
  enum class Kind : uint8_t {
    kDone,
    kLater,    // no answer, or the server is busy or in trouble: try again
    kLocked,   // the credentials do not suffice
    kRefused,  // the request is wrong
  };
  Kind kind = Kind::kDone;
  std::string problem = {};  // in plain words
  std::string code = {};     // MLflow's: "RESOURCE_DOES_NOT_EXIST"
  std::string body = {};     // JSON

  bool is_done() const { return kind == Kind::kDone; }
};

struct MlflowPoint {
  std::string key;
  double value = 0;
  int64_t unix_ms = 0, step = 0;
};

// What a server has of a run.
struct MlflowKnown {
  std::map<std::string, int64_t> last_steps;  // of each metric
  std::map<std::string, std::string> params;
  std::string
      artifacts;  // the place of the artifacts in the server's proxy: "1/RUN/artifacts"; "" = no proxy
};

// The requests of a run to a tracking server: MLflow's REST API 2.0.
class MlflowApi {
 public:
  static constexpr std::size_t kMostPoints = 1000, kMostParams = 100;  // in a request

  // `uri`: "http://host:5000".
  MlflowApi(HttpClient& http, std::string uri) : http_(http), uri_(std::move(uri)) {}

  // Finds the run, or creates run and experiment; the run is marked as running, and `ids` gets its ids.
  // Repeated calls create one run.
  MlflowReply open(const MlflowRun& run, MlflowIds& ids, MlflowKnown& known);
  // At most kMostPoints.
  MlflowReply log_points(const MlflowIds& ids, const std::vector<MlflowPoint>& points);
  // At most kMostParams. MLflow keeps the first value of a parameter: other values are refused.
  MlflowReply log_params(const MlflowIds& ids, const MlflowParams& params);
  MlflowReply put_artifact(const MlflowKnown& known, const std::string& path, std::string bytes);
  // `status`: MLflow's, "FINISHED".
  MlflowReply finish(const MlflowIds& ids, const std::string& status, int64_t unix_ms);

 private:
  MlflowReply send(HttpRequest request);
  MlflowReply get(const std::string& path_and_query);
  MlflowReply post(const std::string& path, const std::string& json);
  MlflowReply find_experiment(const MlflowRun& run, MlflowIds& ids);
  MlflowReply find_run(const MlflowRun& run, MlflowIds& ids);

  HttpClient& http_;
  std::string uri_;
};

}  // namespace tutti

#include "training/loggers/trackers/mlflow_api.h"

#include <cmath>

#include "io/json/json_line.h"
#include "io/json/json_text.h"
#include "runtime/printable.h"
#include "training/loggers/trackers/tracked_names.h"

namespace tutti {
namespace {

constexpr std::size_t kMostShown = 300;  // characters of a server's text
constexpr const char* kProxy = "mlflow-artifacts:";
constexpr const char* kUnknown = "RESOURCE_DOES_NOT_EXIST";

using ServerJson = nlohmann::json;
using Outcome = MlflowReply::Kind;

ServerJson parsed(const std::string& body) {
  ServerJson json = parse_json(body, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : ServerJson::object();
}

// A member within others; null if there is none.
ServerJson member(const ServerJson& json, const std::vector<const char*>& keys) {
  ServerJson inner = json;
  for (const char* key : keys)
    inner = inner.is_object() && inner.contains(key) ? ServerJson(inner[key]) : ServerJson();
  return inner;
}

std::string text_in(const ServerJson& json, const std::vector<const char*>& keys) {
  const ServerJson inner = member(json, keys);
  return inner.is_string() ? inner.get<std::string>() : "";
}

Outcome outcome_of(int status) {
  if (status >= 200 && status < 300) return Outcome::kDone;
  if (status == 401 || status == 403) return Outcome::kLocked;
  return status == 0 || status == 408 || status == 429 || status >= 500 ? Outcome::kLater : Outcome::kRefused;
}

// In JSON of protobufs, numbers that are not finite are texts.
JsonValue number_of(double value) {
  return std::isfinite(value) ? JsonValue(value) : JsonValue(tracked_number(value));
}

// [{...}, {...}]
template <class Values, class Object>
std::string list_of(const Values& values, const Object& object) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + json_line(object(value));
  return "[" + list + "]";
}

std::string named_list(const MlflowParams& params) {
  return list_of(params, [](const auto& param) {
    return JsonFields{{"key", param.first}, {"value", param.second}};
  });
}

// "mlflow-artifacts:/1/RUN/artifacts" and "mlflow-artifacts://host/1/RUN/artifacts" -> "1/RUN/artifacts".
std::string proxied(std::string uri) {
  if (!uri.starts_with(kProxy)) return "";
  uri.erase(0, std::string(kProxy).size());
  if (uri.starts_with("//")) uri.erase(0, std::min(uri.size(), uri.find('/', 2)));
  return uri.substr(std::min(uri.size(), uri.find_first_not_of('/')));
}

MlflowKnown known_of(const ServerJson& run) {
  MlflowKnown known;
  known.artifacts = proxied(text_in(run, {"info", "artifact_uri"}));
  for (const ServerJson& metric : member(run, {"data", "metrics"})) {
    const ServerJson step = member(metric, {"step"});  // a 64-bit number may be a text
    known.last_steps[text_in(metric, {"key"})] =
        step.is_string() ? std::strtoll(step.get<std::string>().c_str(), nullptr, 10)
                         : integer_member(metric, "step");
  }
  for (const ServerJson& param : member(run, {"data", "params"}))
    known.params[text_in(param, {"key"})] = text_in(param, {"value"});
  return known;
}

// A page of another server, or of a proxy, has the status 200 too.
void require_id(MlflowReply& reply, const std::string& id) {
  if (!reply.is_done() || !id.empty()) return;
  reply.kind = Outcome::kLater;
  reply.problem = "the answer is not MLflow's: " + shown(reply.body.substr(0, kMostShown));
}

}  // namespace

MlflowReply MlflowApi::send(HttpRequest request) {
  request.url = uri_ + request.url;
  HttpAnswer answer = http_.send(request);
  MlflowReply reply{outcome_of(answer.status)};
  if (!reply.is_done()) {
    const ServerJson json = parsed(answer.body);
    reply.code = text_in(json, {"error_code"});
    const std::string message = text_in(json, {"message"});
    reply.problem = answer.status == 0
                        ? answer.problem
                        : "status " + std::to_string(answer.status) + " " +
                              shown((message.empty() ? answer.body : message).substr(0, kMostShown));
  }
  reply.body = std::move(answer.body);
  return reply;
}

MlflowReply MlflowApi::get(const std::string& path_and_query) {
  return send({"GET", "/api/2.0/mlflow/" + path_and_query});
}

MlflowReply MlflowApi::post(const std::string& path, const std::string& json) {
  return send({"POST", "/api/2.0/mlflow/" + path, json});
}

// Another run may create the experiment at the same time: the caller tries again.
MlflowReply MlflowApi::find_experiment(const MlflowRun& run, MlflowIds& ids) {
  MlflowReply reply = get("experiments/get-by-name?experiment_name=" + url_part(run.experiment));
  if (reply.is_done()) {
    ids.experiment_id = text_in(parsed(reply.body), {"experiment", "experiment_id"});
  } else if (reply.code == kUnknown) {
    reply = post("experiments/create", json_line({{"name", run.experiment}}));
    if (reply.code == "RESOURCE_ALREADY_EXISTS") reply.kind = Outcome::kLater;
    ids.experiment_id = text_in(parsed(reply.body), {"experiment_id"});
  }
  require_id(reply, ids.experiment_id);
  return reply;
}

// An earlier request may have created the run without an answer.
MlflowReply MlflowApi::find_run(const MlflowRun& run, MlflowIds& ids) {
  const std::string filter = "tags.`" + std::string(kMlflowNonceTag) + "` = '" + ids.nonce + "'";
  MlflowReply reply = post("runs/search", json_line({{"experiment_ids", JsonTexts{ids.experiment_id}},
                                                     {"filter", filter},
                                                     {"max_results", int64_t{1}}}));
  if (!reply.is_done()) return reply;
  const ServerJson runs = member(parsed(reply.body), {"runs"});
  if (runs.is_array() && !runs.empty()) {
    ids.run_id = text_in(runs[0], {"info", "run_id"});
    require_id(reply, ids.run_id);
    return reply;
  }
  MlflowParams tags = {{kMlflowNonceTag, ids.nonce},
                       {"mlflow.user", run.user},
                       {"mlflow.source.name", "tutti"},
                       {"mlflow.source.type", "LOCAL"}};
  tags.insert(tags.end(), run.tags.begin(), run.tags.end());
  reply = post("runs/create", json_line({{"experiment_id", ids.experiment_id},
                                         {"run_name", run.name},
                                         {"user_id", run.user},
                                         {"start_time", ids.start_ms},
                                         {"tags", JsonText{named_list(tags)}}}));
  if (reply.is_done()) ids.run_id = text_in(parsed(reply.body), {"run", "info", "run_id"});
  require_id(reply, ids.run_id);
  return reply;
}

MlflowReply MlflowApi::open(const MlflowRun& run, MlflowIds& ids, MlflowKnown& known) {
  MlflowReply reply;
  if (ids.run_id.empty()) reply = find_experiment(run, ids);
  if (reply.is_done() && ids.run_id.empty()) reply = find_run(run, ids);
  if (!reply.is_done()) return reply;
  reply = post("runs/update", json_line({{"run_id", ids.run_id}, {"status", std::string("RUNNING")}}));
  if (!reply.is_done()) return reply;
  reply = get("runs/get?run_id=" + url_part(ids.run_id));
  if (reply.is_done()) known = known_of(member(parsed(reply.body), {"run"}));
  return reply;
}

MlflowReply MlflowApi::log_points(const MlflowIds& ids, const std::vector<MlflowPoint>& points) {
  const auto metrics = list_of(points, [](const MlflowPoint& point) {
    return JsonFields{{"key", point.key},
                      {"value", number_of(point.value)},
                      {"timestamp", point.unix_ms},
                      {"step", point.step}};
  });
  return post("runs/log-batch", json_line({{"run_id", ids.run_id}, {"metrics", JsonText{metrics}}}));
}

MlflowReply MlflowApi::log_params(const MlflowIds& ids, const MlflowParams& params) {
  return post("runs/log-batch",
              json_line({{"run_id", ids.run_id}, {"params", JsonText{named_list(params)}}}));
}

MlflowReply MlflowApi::put_artifact(const MlflowKnown& known, const std::string& path, std::string bytes) {
  return send({"PUT", "/api/2.0/mlflow-artifacts/artifacts/" + known.artifacts + "/" + path, std::move(bytes),
               "application/octet-stream"});
}

MlflowReply MlflowApi::finish(const MlflowIds& ids, const std::string& status, int64_t unix_ms) {
  return post("runs/update", json_line({{"run_id", ids.run_id}, {"status", status}, {"end_time", unix_ms}}));
}

}  // namespace tutti

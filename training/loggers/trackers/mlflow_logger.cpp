#include "training/loggers/trackers/mlflow_logger.h"

#include <cstdlib>

#include "io/formats/base64.h"
#include "io/formats/png.h"
#include "io/json/json_line.h"
#include "runtime/error.h"
#include "training/loggers/factory.h"
#include "training/loggers/logged_images.h"
#include "training/loggers/trackers/mlflow_files.h"
#include "training/loggers/trackers/mlflow_server.h"
#include "training/loggers/trackers/tracked_names.h"

namespace tutti {
namespace {

constexpr std::size_t kMostName = 250, kMostParam = 6000;  // characters, of MLflow

std::string param_text(const Hyperparameter& value) {
  const auto* text = std::get_if<std::string>(&value);
  return (text ? *text : tracked_json(value)).substr(0, kMostParam);
}

// "images/Images/Train-000012"
std::string artifact_name(const std::string& kind, const std::string& name, const LogTime& time) {
  const std::string batch = std::to_string(time.at.batch);
  return kind + "/" + tracked_path(name) + "-" +
         std::string(6 - std::min<std::size_t>(6, batch.size()), '0') + batch;
}

std::string grid_png(const LoggedImages& grid) {
  return png(grid.pixels, grid.height, grid.width, grid.channels);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string user_name() {
  const std::string user = environment("USER");
  return user.empty() ? environment("LOGNAME") : user;
}

// MLflow's own variables: no secret stands in a recipe or a run folder.
HttpSettings http_settings() {
  HttpSettings settings;
  const std::string token = environment("MLFLOW_TRACKING_TOKEN");
  const std::string user = environment("MLFLOW_TRACKING_USERNAME");
  if (!token.empty())
    settings.headers.push_back("Authorization: Bearer " + token);
  else if (!user.empty())
    settings.headers.push_back("Authorization: Basic " +
                               base64(user + ":" + environment("MLFLOW_TRACKING_PASSWORD")));
  settings.verifies = environment("MLFLOW_TRACKING_INSECURE_TLS") != "true";
  settings.certificates = environment("MLFLOW_TRACKING_SERVER_CERT_PATH");
  return settings;
}

}  // namespace

std::string mlflow_name(const std::string& name) { return tracked_path(name).substr(0, kMostName); }

void MlflowLogger::log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) {
  MlflowParams params;
  for (const auto& [name, value] : all) params.emplace_back(mlflow_name(name), param_text(value));
  store_->log_params(params, time);
}

void MlflowLogger::log_metrics(const LoggedMetrics& metrics, const LogTime& time) {
  LoggedMetrics named;
  for (const auto& [name, value] : metrics)
    named.emplace_back((is_system_metric(name) ? "system/" : "") + mlflow_name(name), value);
  if (!named.empty()) store_->log_metrics(named, time);
}

void MlflowLogger::log_text(const LoggedText& text, const LogTime& time) {
  store_->log_artifact(artifact_name("texts", text.name, time) + ".txt", text.text, time);
}

void MlflowLogger::log_table(const LoggedTable& table, const LogTime& time) {
  store_->log_artifact(artifact_name("tables", table.name, time) + ".json",
                       json_line({{"columns", table.columns}, {"data", table.rows}}), time);
}

void MlflowLogger::log_images(const LoggedImages& images, const LogTime& time) {
  if (images.pixels.empty()) return;
  const auto log = [&](const std::string& name, const LoggedImages& grid) {
    store_->log_artifact(artifact_name("images", name, time) + ".png", grid_png(grid), time);
  };
  log(images.name, grid_of(images));
  for (const LoggedMask& mask : images.masks) log(images.name + "/" + mask.name, grid_of(mask));
}

DestinationPtr MlflowLoggerOptions::make(const Setting& section, const LoggerSeams& seams) const {
  const Warn warn = [&log = seams.log](const std::string& what) { log.warning(what); };
  MlflowRun run{.experiment = experiment_name, .name = run_name.value_or(""), .user = user_name()};
  if (tags)
    for (const auto& [name, value] : tags->table()) run.tags.emplace_back(mlflow_name(name), value.text());
  if (const std::string other = environment("MLFLOW_TRACKING_URI");
      seams.open_http && !other.empty() && other != tracking_uri)
    warn("MLFLOW_TRACKING_URI is not read: the recipe's tracking_uri is " + tracking_uri);
  const auto logger_of = [&](const std::shared_ptr<MlflowStore>& store) {
    if (seams.at_failure) seams.at_failure->push_back([store] { store->fail_run(); });
    return std::make_shared<MlflowLogger>(store);
  };
  if (!is_server())
    return logger_of(std::make_shared<MlflowFiles>(seams.disk, seams.clock, folder(), std::move(run),
                                                   logging_buffer_seconds, warn));
  std::unique_ptr<HttpClient> http;
  try {
    if (seams.open_http) http = seams.open_http(http_settings());
  } catch (const UserError& error) {
    section.at("tracking_uri").fail(error);
  }
  const std::string uri = tracking_uri.substr(0, tracking_uri.find_last_not_of('/') + 1);
  return logger_of(
      std::make_shared<MlflowServer>(seams.disk, seams.clock, warn, std::move(http),
                                     MlflowServer::Options{uri, std::move(run), logging_buffer_seconds}));
}

}  // namespace tutti

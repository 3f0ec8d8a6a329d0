#include "training/loggers/options.h"

#include <regex>

#include "recipe/catalog.h"
#include "runtime/error.h"

namespace tutti {
namespace {

template <class Options>
Bound<Options> on_rank_zero() {
  return option<Options>("rank_zero_only", &Options::rank_zero_only, "false: every rank writes its own");
}

template <class Options>
Bound<Options> flushes() {
  return option<Options>("flush_interval", &Options::flush_interval,
                         "batches kept in memory between writes; a checkpoint writes all")
      .at_least(1);
}

template <class Options>
Bound<Options> traces() {
  return option("log_traces", &Options::log_traces, "also log which algorithms ran at which event");
}

template <class Options>
std::vector<Bound<Options>> file_options() {
  return {option<Options>("filename", &Options::filename,
                          "the file, in the run's folder or absolute; {run_name} and {rank} are replaced"),
          flushes<Options>(), on_rank_zero<Options>()};
}

Key not_carried(const char* name, const std::string& why) {
  return Key{name, KeyType::kAny, "none", ""}.not_carried_over(why);
}

Entry hosted(const char* name, const char* service) {
  return refused_entry(name, "Not carried over: " + std::string(service) +
                                 " is a hosted service; kind = \"command\" passes everything to a script, "
                                 "which can log there.");
}

}  // namespace

Kind<ConsoleLoggerOptions> ConsoleLoggerOptions::kind() {
  using Options = ConsoleLoggerOptions;
  return {"console",
          "Prints metrics at an interval; Composer's ConsoleLogger.",
          {option("log_interval", &Options::log_interval, "how often").more_than(0),
           option("stream", &Options::stream, "where to").one_of({"stdout", "stderr"}), traces<Options>()}};
}

Kind<FileLoggerOptions> FileLoggerOptions::kind() {
  using Options = FileLoggerOptions;
  return {"file", "Everything as lines of text; Composer's FileLogger.",
          with_keys<Options>(file_options<Options>(), {traces<Options>()})};
}

Kind<CsvLoggerOptions> CsvLoggerOptions::kind() {
  return {"csv", "Metrics as comma-separated values: step, batch, epoch, name, value.",
          file_options<CsvLoggerOptions>()};
}

Kind<JsonlLoggerOptions> JsonlLoggerOptions::kind() {
  return {"jsonl", "Everything as JSON lines; metrics.jsonl is written anyway.",
          file_options<JsonlLoggerOptions>()};
}

Kind<TensorboardLoggerOptions> TensorboardLoggerOptions::kind() {
  using Options = TensorboardLoggerOptions;
  return {"tensorboard",
          "Event files for TensorBoard; Composer's TensorboardLogger.",
          {option("log_dir", &Options::log_dir,
                  "the folder, in the run's folder or absolute; {run_name} and {rank} are replaced"),
           flushes<Options>(), on_rank_zero<Options>()}};
}

Kind<CommandLoggerOptions> CommandLoggerOptions::kind() {
  using Options = CommandLoggerOptions;
  return {"command",
          "Passes everything as JSON lines to the standard input of a program.",
          {option("command", &Options::command, "the command for /bin/sh, run in the current folder of tutti")
               .required(),
           on_rank_zero<Options>()}};
}

Kind<WandbLoggerOptions> WandbLoggerOptions::kind() {
  using Options = WandbLoggerOptions;
  return {
      "wandb",
      "The folder of an offline run of Weights & Biases, which `wandb sync` sends; Composer's WandBLogger.",
      {option("project", &Options::project,
              "W&B's project; when absent, the project that `wandb sync --project` names")
           .may_be_absent(),
       option("entity", &Options::entity, "the user or team that owns the project").may_be_absent(),
       option("name", &Options::name, "the run's name on W&B; when absent, run_name").may_be_absent(),
       option("group", &Options::group, "shows runs together").may_be_absent(),
       option("job_type", &Options::job_type, "the run's type within its group").may_be_absent(),
       option("tags", &Options::tags, "words to find the run by"),
       option("notes", &Options::notes, "a text about the run").may_be_absent(),
       option("log_dir", &Options::log_dir,
              "the folder in the run's folder; `wandb sync RUN/wandb/offline-run-*` sends the run"),
       not_carried("log_artifacts", "`wandb artifact put RUN/checkpoints` sends checkpoints"),
       not_carried("rank_zero_only", "rank 0 alone writes the run"),
       not_carried("mode", "the run is written offline, and `wandb sync` sends the run"),
       not_carried("id", "a run gets an id of its own, which a resumed run keeps"),
       not_carried("resume", "a resumed run always continues its run of W&B"),
       not_carried("init_kwargs", "settings of wandb.init are keys of this section")}};
}

Kind<MlflowLoggerOptions> MlflowLoggerOptions::kind() {
  using Options = MlflowLoggerOptions;
  const char* no_registry = "a run has no registered models; `tutti export` writes a model to register";
  return {
      "mlflow",
      "A run of MLflow, in its file store or on a tracking server; Composer's MLFlowLogger.",
      {option("experiment_name", &Options::experiment_name, "MLflow's experiment; made if it does not exist"),
       option("run_name", &Options::run_name, "the run's name in MLflow; when absent, run_name")
           .may_be_absent(),
       option("tracking_uri", &Options::tracking_uri,
              "a server as in \"http://localhost:5000\", or a folder for MLflow's file store, in the run's "
              "folder or absolute; {run_name} is replaced"),
       option("logging_buffer_seconds", &Options::logging_buffer_seconds,
              "seconds between writes or requests; a checkpoint writes all")
           .at_least(0),
       option("tags", &Options::tags, "texts by name: { team = \"vision\" }")
           .as(KeyType::kNamedTexts)
           .may_be_absent(),
       not_carried("log_system_metrics", "[[callbacks]] kind = \"system_metrics_monitor\" logs the machine"),
       not_carried("rank_zero_only", "rank 0 alone writes the run"),
       not_carried("synchronous", "no step waits for a server"),
       not_carried("resume", "a resumed run always continues its run of MLflow"),
       not_carried("model_registry_prefix", no_registry), not_carried("model_registry_uri", no_registry)}};
}

std::string MlflowLoggerOptions::folder() const {
  if (tracking_uri.starts_with("file://")) return tracking_uri.substr(7);
  return tracking_uri.starts_with("file:") ? tracking_uri.substr(5) : tracking_uri;
}

namespace {

// An error that does not show the value, in which a secret stands.
[[noreturn]] void fail_unshown(const Setting& value, const std::string& message) {
  Position position = value.position;
  position.source = nullptr;
  throw UserError(position, value.path + ": " + message);
}

// "host", "host:5000", "[::1]:5000"
bool is_host(const std::string& text) {
  static const std::regex form(R"((\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%-]+)(:([0-9]{1,5}))?)");
  std::smatch parts;
  if (!std::regex_match(text, parts, form)) return false;
  const int port = parts[3].matched ? std::stoi(parts[3]) : 1;
  return port >= 1 && port <= 65535;
}

}  // namespace

void check_tracking_uri(const Setting& tracking_uri) {
  MlflowLoggerOptions options;
  options.tracking_uri = tracking_uri.text();
  if (options.is_server()) {
    const std::string after = options.tracking_uri.substr(options.tracking_uri.find("//") + 2);
    const std::string host = after.substr(0, after.find_first_of("/?#"));
    if (host.find('@') != std::string::npos)
      fail_unshown(tracking_uri,
                   "expected an address without a password; the environment's MLFLOW_TRACKING_USERNAME and "
                   "MLFLOW_TRACKING_PASSWORD are the credentials");
    if (after.find_first_of("?#") != std::string::npos)
      fail_unshown(tracking_uri,
                   "expected an address without '?' and '#', since the run keeps the address; the "
                   "environment's MLFLOW_TRACKING_TOKEN is the token");
    if (!is_host(host)) tracking_uri.fail("expected a host, and a port from 1 to 65535 if any");
  } else if (options.folder().empty() || options.folder().find(':') != std::string::npos ||
             options.folder().starts_with("databricks")) {
    tracking_uri.fail(
        "expected a folder, or the address of a server, as in \"http://localhost:5000\": `mlflow server "
        "--backend-store-uri sqlite:///mlflow.db` makes a database reachable");
  }
}

Catalog logger_catalog() {
  std::vector<Entry> entries = LoggerKinds::entries();
  entries.push_back(plugin_entry("logger"));
  entries.push_back(refused_entry(
      "in_memory", "Not for recipes: a C++ program passes an InMemoryLogger to the run as a listener."));
  entries.push_back(refused_entry("progress_bar", "Not a section: [train] progress_bar shows or hides it."));
  for (const auto& [name, service] :
       {std::pair{"cometml", "Comet"}, std::pair{"neptune", "Neptune"}, std::pair{"slack", "Slack"},
        std::pair{"mosaicml", "the MosaicML platform"}})
    entries.push_back(hosted(name, service));
  entries.push_back(refused_entry(
      "remote_uploader_downloader",
      "Not carried over: [checkpoint] save_folder = \"s3://...\" and [remote] copy checkpoints."));
  return {.section = "loggers",
          .noun = "logger",
          .doc = "Loggers besides metrics.jsonl. docs/loggers.md describes what is logged.",
          .entries = std::move(entries),
          .repeated = true};
}

}  // namespace tutti

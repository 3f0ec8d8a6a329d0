#include "training/loggers/options.h"

#include "recipe/catalog.h"

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

Catalog logger_catalog() {
  std::vector<Entry> entries = LoggerKinds::entries();
  entries.push_back(plugin_entry("logger"));
  entries.push_back(refused_entry(
      "in_memory", "Not for recipes: a C++ program passes an InMemoryLogger to the run as a listener."));
  entries.push_back(refused_entry("progress_bar", "Not a section: [train] progress_bar shows or hides it."));
  for (const auto& [name, service] :
       {std::pair{"wandb", "Weights & Biases"}, std::pair{"mlflow", "MLflow"}, std::pair{"cometml", "Comet"},
        std::pair{"neptune", "Neptune"}, std::pair{"slack", "Slack"},
        std::pair{"mosaicml", "the MosaicML platform"}})
    entries.push_back(hosted(name, service));
  entries.push_back(
      refused_entry("remote_uploader_downloader",
                    "Not carried over: tutti writes to file systems; use another program to copy files."));
  return {.section = "loggers",
          .noun = "logger",
          .doc = "Loggers besides metrics.jsonl. docs/loggers.md describes what is logged.",
          .entries = std::move(entries),
          .repeated = true};
}

}  // namespace tutti

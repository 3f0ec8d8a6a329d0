#include "training/loggers/catalog.h"

#include "recipe/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

Key rank_zero_only() { return {"rank_zero_only", kBoolean, "true", "false: every rank writes its own"}; }

Key flush_interval() {
  return Key{"flush_interval", kInteger, "1",
             "batches kept in memory between writes; a checkpoint writes all"}
      .at_least(1);
}

Key log_traces() { return {"log_traces", kBoolean, "false", "also log which algorithms ran at which event"}; }

std::vector<Key> file_keys(const char* filename, std::vector<Key> more = {}) {
  std::vector<Key> keys = {{"filename", kText, filename,
                            "the file, in the run's folder or absolute; {run_name} and {rank} are replaced"},
                           flush_interval(),
                           rank_zero_only()};
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

std::vector<Entry> files() {
  return {
      {"file", "Everything as lines of text; Composer's FileLogger.",
       file_keys("logs-rank{rank}.txt",
                 {{"log_traces", kBoolean, "true", "also log which algorithms ran at which event"}})},
      {"csv", "Metrics as comma-separated values: step, batch, epoch, name, value.",
       file_keys("metrics-rank{rank}.csv")},
      {"jsonl", "Everything as JSON lines; metrics.jsonl is written anyway.",
       file_keys("logs-rank{rank}.jsonl")},
      {"tensorboard",
       "Event files for TensorBoard; Composer's TensorboardLogger.",
       {{"log_dir", kText, "tensorboard",
         "the folder, in the run's folder or absolute; {run_name} and {rank} are replaced"},
        flush_interval(),
        rank_zero_only()}},
  };
}

Entry hosted(const char* name, const char* service) {
  return refused_entry(name, "Not carried over: " + std::string(service) +
                                 " is a hosted service; kind = \"command\" passes everything to a script, "
                                 "which can log there.");
}

}  // namespace

Catalog logger_catalog() {
  std::vector<Entry> entries = {
      {"console",
       "Prints metrics at an interval; Composer's ConsoleLogger.",
       {Key{"log_interval", kTime, "1ba", "how often"}.more_than(0),
        Key{"stream", kText, "stderr", "where to"}.one_of({"stdout", "stderr"}), log_traces()}}};
  for (auto& entry : files()) entries.push_back(std::move(entry));
  entries.push_back({"command",
                     "Passes everything as JSON lines to the standard input of a program.",
                     {{"command", kText, "", "the command for /bin/sh, run in the current folder of tutti"},
                      rank_zero_only()}});
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

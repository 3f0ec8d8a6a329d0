#include "training/loggers/catalog.h"

#include "recipe/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

Key rank_zero_only() {
  return {"rank_zero_only", kBoolean, "true", "false: every rank writes one of its own"};
}

Key flush_interval() {
  return Key{"flush_interval", kInteger, "1", "batches that may wait in memory; a checkpoint waits for them"}
      .at_least(1);
}

Key log_traces() { return {"log_traces", kBoolean, "false", "also which algorithms ran at which event"}; }

std::vector<Key> file_keys(const char* filename, std::vector<Key> more = {}) {
  std::vector<Key> keys = {
      {"filename", kText, filename, "the file, within the run's folder; {run_name} and {rank} are put in"},
      flush_interval(),
      rank_zero_only()};
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

std::vector<Entry> files() {
  return {
      {"file", "Everything as lines of text; Composer's FileLogger.",
       file_keys("logs-rank{rank}.txt",
                 {{"log_traces", kBoolean, "true", "also which algorithms ran at which event"}})},
      {"csv", "Metrics as comma-separated values: step, batch, epoch, name, value.",
       file_keys("metrics-rank{rank}.csv")},
      {"jsonl", "Everything as JSON objects, one a line; metrics.jsonl is written without it.",
       file_keys("logs-rank{rank}.jsonl")},
      {"tensorboard",
       "Event files for TensorBoard; Composer's TensorboardLogger.",
       {{"log_dir", kText, "tensorboard", "their folder, within the run's; {run_name} and {rank} are put in"},
        flush_interval(),
        rank_zero_only()}},
  };
}

Entry hosted(const char* name, const char* service) {
  return refused_entry(name, "Not carried over: " + std::string(service) +
                                 " is a service of others; kind = \"command\" passes everything on to a "
                                 "script that logs to it.");
}

}  // namespace

Catalog logger_catalog() {
  std::vector<Entry> entries = {
      {"console",
       "Prints metrics every so often; Composer's ConsoleLogger.",
       {Key{"log_interval", kTime, "1ba", "how often"}.more_than(0),
        Key{"stream", kText, "stderr", "where to"}.one_of({"stdout", "stderr"}), log_traces()}}};
  for (auto& entry : files()) entries.push_back(std::move(entry));
  entries.push_back({"command",
                     "Passes everything on to a program, a JSON object a line on its standard input.",
                     {{"command", kText, "", "what /bin/sh runs, in the folder where tutti was started"},
                      rank_zero_only()}});
  entries.push_back(plugin_entry("logger"));
  entries.push_back(
      refused_entry("in_memory",
                    "Not for recipes: InMemoryLogger keeps everything for the C++ program that trains, which "
                    "gives it to the run as a listener."));
  entries.push_back(refused_entry("progress_bar", "Not a section: [train] progress_bar shows or hides it."));
  for (const auto& [name, service] :
       {std::pair{"wandb", "Weights & Biases"}, std::pair{"mlflow", "MLflow"}, std::pair{"cometml", "Comet"},
        std::pair{"neptune", "Neptune"}, std::pair{"slack", "Slack"},
        std::pair{"mosaicml", "the MosaicML platform"}})
    entries.push_back(hosted(name, service));
  entries.push_back(
      refused_entry("remote_uploader_downloader",
                    "Not carried over: tutti writes to file systems; another program may copy them."));
  return {.section = "loggers",
          .noun = "logger",
          .doc = "Where what is logged goes, besides metrics.jsonl. docs/loggers.md says what is logged.",
          .entries = std::move(entries),
          .repeated = true};
}

}  // namespace tutti

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "recipe/options.h"
#include "recipe/time/time.h"

// The kinds of [[loggers]], with Composer's names and defaults. Free of libtorch.
namespace tutti {

class LoggerDestination;
using DestinationPtr = std::shared_ptr<LoggerDestination>;
struct LoggerSeams;

struct ConsoleLoggerOptions {
  Time log_interval{1, TimeUnit::kBatch};
  std::string stream = "stderr";  // or stdout
  bool log_traces = false;

  static Kind<ConsoleLoggerOptions> kind();
  DestinationPtr make(const Setting& section, const LoggerSeams& seams) const;
};

// The file of a logger.
struct LoggedFile {
  std::string filename = "";   // see logged_path
  int64_t flush_interval = 1;  // batches
  bool rank_zero_only = true;

  WrittenFile written() const { return {"filename", filename, /*by_rank=*/!rank_zero_only}; }
};

struct FileLoggerOptions : LoggedFile {
  FileLoggerOptions() : LoggedFile{.filename = "logs-rank{rank}.txt"} {}
  bool log_traces = true;

  static Kind<FileLoggerOptions> kind();
  DestinationPtr make(const Setting& section, const LoggerSeams& seams) const;
};

struct CsvLoggerOptions : LoggedFile {
  CsvLoggerOptions() : LoggedFile{.filename = "metrics-rank{rank}.csv"} {}

  static Kind<CsvLoggerOptions> kind();
  DestinationPtr make(const Setting& section, const LoggerSeams& seams) const;
};

struct JsonlLoggerOptions : LoggedFile {
  JsonlLoggerOptions() : LoggedFile{.filename = "logs-rank{rank}.jsonl"} {}

  static Kind<JsonlLoggerOptions> kind();
  DestinationPtr make(const Setting& section, const LoggerSeams& seams) const;
};

struct TensorboardLoggerOptions {
  std::string log_dir = "tensorboard";  // see logged_path
  int64_t flush_interval = 1;           // batches
  bool rank_zero_only = true;

  static Kind<TensorboardLoggerOptions> kind();
  WrittenFile written() const {
    return {"log_dir", log_dir, /*by_rank=*/!rank_zero_only, /*is_folder=*/true};
  }
  DestinationPtr make(const Setting& section, const LoggerSeams& seams) const;
};

struct CommandLoggerOptions {
  std::string command = "";  // for /bin/sh
  bool rank_zero_only = true;

  static Kind<CommandLoggerOptions> kind();
  DestinationPtr make(const Setting& section, const LoggerSeams& seams) const;
};

struct WandbLoggerOptions {
  std::optional<std::string> project, entity, group, job_type, notes;
  std::optional<std::string> name;  // none: the run's
  std::vector<std::string> tags = {};
  std::string log_dir = "wandb";

  static Kind<WandbLoggerOptions> kind();
  WrittenFile written() const { return {"log_dir", log_dir, /*by_rank=*/false, /*is_folder=*/true}; }
  DestinationPtr make(const Setting& section, const LoggerSeams& seams) const;
};

struct MlflowLoggerOptions {
  std::string experiment_name = "Default";
  std::optional<std::string> run_name;  // none: the run's
  std::optional<Setting> tags;          // a table of texts
  std::string tracking_uri = "mlruns";  // a folder, or a server
  double logging_buffer_seconds = 10;

  static Kind<MlflowLoggerOptions> kind();
  bool is_server() const {
    return tracking_uri.starts_with("http://") || tracking_uri.starts_with("https://");
  }
  // Of a file store: without "file://".
  std::string folder() const;
  WrittenFile written() const {
    return {"tracking_uri", is_server() ? "mlflow" : folder(), /*by_rank=*/false, /*is_folder=*/true};
  }
  DestinationPtr make(const Setting& section, const LoggerSeams& seams) const;
};

// Throws UserError for an address that is neither a folder nor a server over HTTP, or that has a password.
void check_tracking_uri(const Setting& tracking_uri);

using LoggerKinds =
    Kinds<ConsoleLoggerOptions, FileLoggerOptions, CsvLoggerOptions, JsonlLoggerOptions,
          TensorboardLoggerOptions, CommandLoggerOptions, WandbLoggerOptions, MlflowLoggerOptions>;

// The catalog of [[loggers]].
Catalog logger_catalog();

}  // namespace tutti

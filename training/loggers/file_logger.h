#pragma once

#include <memory>
#include <string>
#include <unordered_set>

#include "io/line_file.h"
#include "runtime/disk.h"
#include "training/loggers/json_lines.h"
#include "training/loggers/options.h"

namespace tutti {

// The path of a logger's line file for this run.
std::string logged_path(const LogStart& start, const std::string& pattern);

// The format of the lines of a kind of file.
struct LineKind {
  LineFile::StepOf step_of;
  std::string (*without_epoch)(std::string line) = nullptr;  // null: lines have no epoch
};

// Common part of file loggers. Lines survive a kill. A resumed run removes lines of later steps, and does not
// repeat lines of the last saved step, whose evaluation may be repeated. The repeated lines may differ in
// their epoch.
class FileLines {
 public:
  // `warn` receives write failures; default: standard error.
  FileLines(Disk& disk, LoggedFile file, LineKind kind, Warn warn);

  void open(const LogStart& start);
  void append(const std::string& line);
  bool empty() const { return file_->empty(); }
  void step_end() { ++unflushed_; }
  void flush(bool sync);
  void finish();
  const LoggedFile& options() const { return options_; }

 private:
  std::string key_of(const std::string& line) const;

  Disk& disk_;
  LoggedFile options_;
  LineKind kind_;
  Warn warn_;
  std::unique_ptr<LineFile> file_;
  std::unordered_set<std::string> earlier_lines_;  // of the step before the resume point, without epochs
  int64_t unflushed_ = 0;                          // steps
};

// A destination that is a file of lines.
template <class Destination>
// A destination that writes a line file.
class LineLogger : public Destination {
 public:
  LineLogger(Disk& disk, LoggedFile file, LineKind kind, Warn warn)
      : lines_(disk, std::move(file), std::move(kind), std::move(warn)) {}

  bool rank_zero_only() const override { return lines_.options().rank_zero_only; }
  bool durable() const override { return true; }
  void open(const LogStart& start) override { lines_.open(start); }
  void step_end(const LogTime&) override { lines_.step_end(); }
  void flush(bool sync) override { lines_.flush(sync); }
  bool finish(bool) override {
    lines_.finish();
    return true;
  }

 protected:
  FileLines lines_;
};

// Writes all records as lines of text: composer.loggers.FileLogger, plus [step=] in each line.
class FileLogger final : public LineLogger<LoggerDestination> {
 public:
  FileLogger(Disk& disk, LoggedFile file, bool log_traces, Warn warn = {});

  std::string name() const override { return "FileLogger"; }
  void log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_traces(const LoggedTraces& traces, const LogTime& time) override;
  void log_text(const LoggedText& text, const LogTime& time) override;
  void log_table(const LoggedTable& table, const LogTime& time) override;

 private:
  void line(const char* type, const LogTime& time, const std::string& name, const std::string& value);

  bool log_traces_;
};

// Writes metrics and traces as comma-separated values: step, batch, epoch, name, value.
class CsvLogger final : public LineLogger<LoggerDestination> {
 public:
  CsvLogger(Disk& disk, LoggedFile file, Warn warn = {});

  std::string name() const override { return "CsvLogger"; }
  void open(const LogStart& start) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_traces(const LoggedTraces& traces, const LogTime& time) override;

 private:
  void row(const LogTime& time, const std::string& name, double value);
};

// Writes everything as JSON lines.
class JsonlLogger final : public LineLogger<JsonLines> {
 public:
  JsonlLogger(Disk& disk, LoggedFile file, Warn warn = {});
  std::string name() const override { return "JsonlLogger"; }

 protected:
  void line(const std::string& json) override { lines_.append(json); }
};

}  // namespace tutti

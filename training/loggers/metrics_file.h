#pragma once

#include <set>
#include <string>
#include <unordered_map>

#include "io/line_file.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

// metrics.jsonl: a JSON line per step, per evaluation, and per step with metrics of algorithms and callbacks
// (the last value counts). After a kill the file holds whole lines in order; only the last line may be torn.
class MetricsFile final : public LoggerDestination {
 public:
  // `started_s`: unix time of the process's start, the zero of "since_start_s" in the first line.
  MetricsFile(Disk& disk, const Clock& clock, const std::string& run_dir, double started_s, Warn warn);

  std::string name() const override { return "metrics.jsonl"; }
  bool numbers_only() const override { return true; }
  bool durable() const override { return true; }
  // A late checkpoint is better than a checkpoint without its lines; training continues meanwhile.
  Nanoseconds sync_timeout() const override { return std::chrono::seconds(5); }
  Nanoseconds finishes_within() const override { return std::chrono::seconds(7); }

  // Removes lines of steps that will be repeated. A new run, a run from another run's checkpoint and a run
  // with an unreadable file keep an earlier file under another name.
  void open(const LogStart& start) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_traces(const LoggedTraces& traces, const LogTime& time) override;
  void log_step(const StepReport& report, const LogTime& time) override;
  void log_evaluation(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_trainer_metrics(const LoggedMetrics&, const LogTime&) override {}
  void evaluation_due(const LogTime& time) override { write_collected(time); }
  void step_end(const LogTime& time) override { write_collected(time); }
  void flush(bool sync) override { lines_.flush(sync); }
  bool finish(bool late) override;

 private:
  void resume(int64_t step);
  void collect(const std::string& name, double value);
  void write_collected(const LogTime& time);

  const Clock& clock_;
  double started_s_;
  Warn warn_;
  LineFile lines_;
  LoggedMetrics collected_;                               // since the last line
  std::unordered_map<std::string, std::size_t> indices_;  // in collected_
  std::set<std::string> evaluated_before_;                // metrics of an earlier attempt at its last step
  bool first_ = true;                                     // no step yet
};

}  // namespace tutti

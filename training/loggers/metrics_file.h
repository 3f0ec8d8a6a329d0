#pragma once

#include <set>
#include <string>
#include <unordered_map>

#include "io/line_file.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

// metrics.jsonl: a JSON object a line for each step, each evaluation, and what algorithms and callbacks
// logged of a step (a metric that was logged twice with its last value). Whenever the process is killed it
// holds whole lines in order, and at most the last one is torn.
class MetricsFile final : public LoggerDestination {
 public:
  // `started_s`: unix time of the process's start, which "since_start_s" of the first line counts from.
  MetricsFile(Disk& disk, const Clock& clock, const std::string& run_dir, double started_s,
              LineFile::Warn warn);

  std::string name() const override { return "metrics.jsonl"; }
  bool numbers_only() const override { return true; }
  bool durable() const override { return true; }
  // A checkpoint without its lines is worse than one that comes late; training goes on meanwhile.
  Nanoseconds sync_timeout() const override { return std::chrono::seconds(5); }
  // A machine that is busy and a disk that stalls for a moment lose nothing.
  Nanoseconds full_queue_timeout() const override { return std::chrono::seconds(1); }
  Nanoseconds finishes_within() const override { return std::chrono::seconds(7); }

  // The lines of steps that are done again are dropped. A run that starts afresh, or from another run's
  // checkpoint, keeps an earlier run's file beside its own, and so does one that cannot read it.
  void open(const LogStart& start) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_traces(const LoggedTraces& traces, const LogTime& time) override;
  void log_step(const StepReport& report, const LogTime& time) override;
  void log_evaluation(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_trainer_metrics(const LoggedMetrics&, const LogTime&) override {}
  void evaluation_due(const LogTime& time) override { write_gathered(time); }
  void step_end(const LogTime& time) override { write_gathered(time); }
  void flush(bool sync) override { lines_.flush(sync); }
  bool finish(bool late) override;

 private:
  void resume(int64_t step);
  void gather(const std::string& name, double value);
  void write_gathered(const LogTime& time);

  const Clock& clock_;
  double started_s_;
  LineFile::Warn warn_;
  LineFile lines_;
  LoggedMetrics gathered_;                               // since the last line
  std::unordered_map<std::string, std::size_t> places_;  // in gathered_
  std::set<std::string> evaluated_before_;  // what an earlier start found at the step it ended with
  bool first_ = true;                       // no step yet
};

}  // namespace tutti

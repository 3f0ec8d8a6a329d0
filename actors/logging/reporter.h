#pragma once

#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "actors/messages/messages.h"
#include "io/line_file.h"
#include "runtime/actor/actor.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/terminal_output.h"

namespace tutti {

// Rank 0's: writes metrics.jsonl and shows progress (one line that changes on a terminal, plain lines else);
// at the end a table of what came out and where it lies. Who reads that is not waited for. Whenever it is
// killed, metrics.jsonl holds whole lines in order, and at most the last one is torn.
class Reporter final : public Actor {
 public:
  struct Options {
    std::string run_dir;
    std::string checkpoints;
    std::string newest_checkpoint;  // where the newest one is to be found
    std::FILE* out = stdout;        // null: shows nothing
    bool terminal = false;
    bool progress = true;                                    // false: no progress, but the table at the end
    double process_started_s = 0;                            // unix time, for since_start_s
    int64_t show_every_steps = 0;                            // plain lines; 0 = by time
    std::function<void(const std::string& what)> warn = {};  // empty: to standard error
  };

  Reporter(Options options, Disk& disk, Clock& clock);

  void receive(Context& context, Envelope& envelope) override;
  std::optional<TimePoint> idle(Context& context) override;

 private:
  void open(const ReportFrom& from);
  void resume(int64_t step);
  void step(Context& context, const StepDone& done);
  void evaluation(Context& context, const EvalDone& done);
  void log(const MetricsLogged& logged);
  void show(Context& context, const StepDone& done, bool now);
  bool is_time_to_show(Context& context, int64_t step) const;
  std::string shown(const std::string& metric) const;
  void table();
  void show_rest(Context& context);
  double since_start_s() const;

  Options options_;
  Clock& clock_;
  TerminalOutput out_;
  LineFile metrics_;
  StepDone last_;
  EvalDone last_eval_;
  std::string sample_;
  int64_t steps_ = 0;
  std::set<std::string> evaluated_before_;  // lines of evaluations that an earlier start has reported
  TimePoint first_step_, shown_;
  int64_t shown_step_ = -1;
  double samples_ = 0;  // since the first step
};

}  // namespace tutti

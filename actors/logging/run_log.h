#pragma once

#include <string>

#include "actors/logging/log_outlets.h"
#include "actors/logging/report_outlet.h"
#include "actors/messages/verdict.h"
#include "training/loggers/step_log.h"
#include "training/loggers/trainer_log.h"
#include "training/state.h"

namespace tutti {

// All that a rank logs of its training, on its way to metrics.jsonl, the display and the log destinations.
class RunLog {
 public:
  // All must outlive it.
  RunLog(const State& state, const RankActors& actors, Log& log, Recorder& recorder);

  StepLog& logger() { return logger_; }       // of algorithms and callbacks
  TrainerLog& trainer() { return trainer_; }  // what Composer's Trainer logs itself

  // `checkpoint`: the folder that the run resumes from, or ""; `own`: the checkpoint is this run's.
  void start(Context& context, const std::string& checkpoint, bool own);
  // What is logged from here on belongs to `step`, counted from 1.
  void begin_step(int64_t step) { logger_.begin_step(step); }

  // After the step's verdict. `took`: since the step before was over.
  void step_done(Context& context, const Verdict& verdict, double lr, Nanoseconds took);
  void evaluated(Context& context, const LoggedMetrics& metrics);
  void text_sample(Context& context, std::string text);

  // Sends the metrics that were logged since the last time.
  void send_metrics(Context& context);
  // The step is over: sends all that was logged in it.
  void end_step(Context& context);
  // After the last step.
  void end(Context& context);
  // A LogWriter has dealt with `count` messages.
  void taken(ActorId writer, int count) { outlets_.taken(writer, count); }

 private:
  const State& state_;
  StepLog logger_;
  TrainerLog trainer_;
  LogOutlets outlets_;
  ReportOutlet reports_;
};

}  // namespace tutti

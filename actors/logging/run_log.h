#pragma once

#include <string>

#include "actors/logging/log_queues.h"
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

  // After the step's verdict, once its batch is counted. `before`: the time until then; `took`: since the
  // step before was over.
  void step_done(const Timestamp& before, const Verdict& verdict, double lr, Nanoseconds took);
  void text_sample(Context& context, const std::string& text);

  // Sends what was logged until now: what comes may take long.
  void send(Context& context);
  // The step is over: sends all that was logged in it.
  void end_step(Context& context);
  // After the last step.
  void end(Context& context) { queues_.end(context); }

 private:
  const State& state_;
  StepLog logger_;
  TrainerLog trainer_;
  LogQueues queues_;
};

}  // namespace tutti

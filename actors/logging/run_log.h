#pragma once

#include <string>
#include <vector>

#include "actors/logging/log_queue.h"
#include "actors/messages/verdict.h"
#include "training/loggers/step_log.h"
#include "training/loggers/trainer_log.h"
#include "training/state.h"

namespace tutti {

// A rank's log of its training, sent to metrics.jsonl, the display and the log destinations.
class RunLog {
 public:
  // All references must outlive the log.
  RunLog(const State& state, const RankActors& actors, Log& log);

  StepLog& logger() { return logger_; }       // for algorithms and callbacks
  TrainerLog& trainer() { return trainer_; }  // entries that Composer's Trainer logs

  // The checkpoint that the run resumes from.
  struct Resumed {
    std::string folder;                // "" = none
    bool own = false;                  // of this run
    std::vector<std::string> changes;  // changes of the recipe since the checkpoint
  };
  void start(Context& context, const Resumed& from);
  // Later entries belong to `step`, counted from 1.
  void begin_step(int64_t step) { logger_.begin_step(step); }

  // The time of a step, since the end of the previous step.
  struct StepTimes {
    Nanoseconds all;
    Nanoseconds data_wait;  // for its batch
    ThreadTime read;        // the batch was read in
  };
  // After the verdict, once the state's time includes the step. `before`: the time before.
  void step_done(const Timestamp& before, const Verdict& verdict, double lr, const StepTimes& took);
  void training_ended(const TrainingEnded& ended) { logger_.log_training_end(ended); }
  void text_sample(Context& context, const std::string& text);

  // Sends all entries so far, before long work.
  void send(Context& context);
  // Ends the step and sends its entries.
  void end_step(Context& context);
  // After the last step.
  void end(Context& context);

 private:
  const State& state_;
  StepLog logger_;
  TrainerLog trainer_;
  std::vector<LogQueue> queues_;
};

}  // namespace tutti

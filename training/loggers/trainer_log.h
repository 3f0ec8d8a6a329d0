#pragma once

#include "recipe/setting.h"
#include "training/loggers/step_log.h"
#include "training/state.h"

namespace tutti {

// Logs the entries of Composer's Trainer, with the same names and times, to destinations; metrics.jsonl has
// its own lines. Does nothing without destinations.
class TrainerLog {
 public:
  TrainerLog(StepLog& log, const State& state) : log_(log), state_(state) {}

  // The seed and every value of the recipe: "optimizer.lr"; null: the seed alone.
  void start(const Setting* recipe);
  void epoch_start();
  void batch_start(bool has_tokens);
  void epoch_trained();  // after the last batch of an epoch is counted
  void fit_end();

  LoggedMetrics train_metrics() const;  // "metrics/train/MulticlassAccuracy", "loss/train/boxes"

 private:
  void log_times(bool has_tokens, bool epoch);

  StepLog& log_;
  const State& state_;
};

}  // namespace tutti

#pragma once

#include "recipe/setting.h"
#include "training/loggers/step_log.h"
#include "training/state.h"

namespace tutti {

// What Composer's Trainer itself logs, by its names and at its times, to destinations; metrics.jsonl has the
// same in lines of its own. Nothing where there is no destination.
class TrainerLog {
 public:
  TrainerLog(StepLog& log, const State& state) : log_(log), state_(state) {}

  // The seed and every value of the recipe: "optimizer.lr"; null: the seed alone.
  void start(const Setting* recipe);
  void epoch_start();
  void batch_start(bool has_tokens);
  void epoch_trained();  // after its last batch is counted
  void fit_end();

  LoggedMetrics train_metrics() const;  // "metrics/train/MulticlassAccuracy"

 private:
  void times(bool has_tokens, bool epoch);

  StepLog& log_;
  const State& state_;
};

}  // namespace tutti

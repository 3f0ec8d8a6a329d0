#pragma once

#include <map>
#include <optional>

#include "training/engine/callback.h"

namespace tutti {

// Logs after each batch, except the first skip_batches, the estimated remaining time, evaluations included:
// "time/remaining_estimate". composer.callbacks.RuntimeEstimator.
class RuntimeEstimator final : public Callback {
 public:
  RuntimeEstimator(int64_t skip_batches, const std::string& time_unit);

  std::string name() const override { return "RuntimeEstimator"; }
  void init(State& state, Logger& logger) override;
  void fit_start(State& state, Logger& logger) override;
  void batch_end(State& state, Logger& logger) override;
  void eval_end(State& state, Logger& logger) override;

  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  struct Start {
    double seconds = 0;  // of training
    double part = 0;     // fraction of max_duration
  };
  struct Evaluations {
    double count = 0;
    double seconds = 0;  // without the first, often the slowest
    double first_seconds = 0;
    double part = 0;  // fraction of max_duration between the start and the last evaluation
  };

  void start(const State& state);
  double remaining_evaluation_s() const;

  double to_skip_;
  std::string time_unit_;
  double divider_;
  std::optional<Start> start_;
  std::map<std::string, Evaluations> evaluations_;  // by the evaluator's label
};

}  // namespace tutti

#pragma once

#include <optional>
#include <string>

#include "recipe/setting.h"
#include "training/callbacks/options.h"
#include "training/engine/callback.h"
#include "training/state.h"

namespace tutti {

// A metric that decides when to stop, and the direction of improvement.
class WatchedMetric {
 public:
  using Options = WatchedMetricOptions;

  explicit WatchedMetric(Options options);

  // Throws UserError if the model's evaluations do not measure the metric.
  void require(const State& state) const;

  // True if the current events belong to the metric's data.
  bool is_of(const State& state) const { return state.dataloader_label == options_.dataloader_label; }
  double value(const State& state) const;  // throws UserError if unknown
  bool better(double value, double other, const State& state) const;
  std::string text(double value) const;  // "CrossEntropy of eval is 0.3"

 private:
  Options options_;
  std::string name_;                  // of the metric, without its label
  bool greater_, composers_greater_;  // greater is better: by tutti's rule, by Composer's
};

// Checks a metric at the end of its evaluation or, for training metrics, of the epoch; optionally of the
// batch.
class MetricStopper : public Callback {
 public:
  MetricStopper(WatchedMetric metric, bool every_batch)
      : metric_(std::move(metric)), every_batch_(every_batch) {}

  void require(const State& state) const override { metric_.require(state); }
  void eval_end(State& state, Logger&) override {
    if (!state.evaluation_cut) check_metric(state);
  }
  void epoch_end(State& state, Logger&) override { check_metric(state); }
  void batch_end(State& state, Logger&) override {
    if (every_batch_) check_metric(state);
  }

 protected:
  virtual void check(double value, State& state) = 0;
  const WatchedMetric& metric() const { return metric_; }

 private:
  void check_metric(State& state) {
    if (metric_.is_of(state)) check(metric_.value(state), state);
  }

  WatchedMetric metric_;
  bool every_batch_;
};

// Ends the training if a metric has not improved by more than min_delta for longer than `patience`, in epochs
// or batches. With a patience in batches every batch is checked. composer.callbacks.EarlyStopper.
class EarlyStopper final : public MetricStopper {
 public:
  // Throws UserError if patience is in another unit.
  EarlyStopper(WatchedMetric metric, double min_delta, const Time& patience);

  std::string name() const override { return "EarlyStopper"; }
  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  struct Best {
    double value = 0;
    Time at;  // in the unit of patience
  };

  void check(double value, State& state) override;

  double min_delta_;
  Time patience_;
  std::optional<Best> best_;
};

// Ends the training when a metric is better than `threshold`. composer.callbacks.ThresholdStopper.
class ThresholdStopper final : public MetricStopper {
 public:
  ThresholdStopper(WatchedMetric metric, double threshold, bool stop_on_batch)
      : MetricStopper(std::move(metric), stop_on_batch), threshold_(threshold) {}

  std::string name() const override { return "ThresholdStopper"; }

 private:
  void check(double value, State& state) override;

  double threshold_;
};

// Ends the run with an error on all ranks if the loss of a batch is not a number.
// composer.callbacks.NaNMonitor.
class NaNMonitor final : public Callback {
 public:
  std::string name() const override { return "NaNMonitor"; }
  // Throws OperatingError before the optimizer's step.
  void after_train_batch(State& state, Logger& logger) override;
};

}  // namespace tutti

#pragma once

#include <optional>
#include <string>

#include "recipe/setting.h"
#include "training/engine/callback.h"
#include "training/state.h"

namespace tutti {

// A metric by which a run is stopped, and which of two values is the better one.
class WatchedMetric {
 public:
  struct Options {
    Setting monitor;               // "MulticlassAccuracy"; blamed for errors
    std::string dataloader_label;  // "eval"
    // "greater", "gt", "less", "lt"; "": less of a loss, error, perplexity or cross entropy.
    std::string comp;
  };

  explicit WatchedMetric(Options options);

  // Throws UserError where the model measures no such thing in its evaluations.
  void require(const State& state) const;

  // Whether the events that come now are of its data.
  bool is_of(const State& state) const { return state.dataloader_label == options_.dataloader_label; }
  double value(const State& state) const;  // UserError where there is none
  bool better(double one, double other, const State& state) const;

 private:
  Options options_;
  bool greater_, composers_greater_;  // are better
};

// Ends the training once a metric has not become better by more than min_delta for longer than `patience`, in
// epochs or batches; looked at where the evaluation, or for metrics of the training the epoch, ends, with a
// patience in batches the batch too. composer.callbacks.EarlyStopper.
class EarlyStopper final : public Callback {
 public:
  // Throws UserError where patience is in another unit.
  EarlyStopper(WatchedMetric metric, double min_delta, const Time& patience);

  std::string name() const override { return "EarlyStopper"; }
  void require(const State& state) const override { metric_.require(state); }
  void after_load(State& state, Logger&) override { require(state); }
  void eval_end(State& state, Logger&) override {
    if (!state.evaluation_cut) look(state);
  }
  void epoch_end(State& state, Logger&) override { look(state); }
  void batch_end(State& state, Logger&) override {
    if (patience_.unit() == TimeUnit::kBatch) look(state);
  }

  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  struct Best {
    double value = 0;
    Time at;  // in patience's unit
  };

  void look(State& state);

  WatchedMetric metric_;
  double min_delta_;
  Time patience_;
  std::optional<Best> best_;
};

// Ends the training once a metric is better than `threshold`; looked at where the evaluation, or for metrics
// of the training the epoch, ends, with stop_on_batch the batch too. composer.callbacks.ThresholdStopper.
class ThresholdStopper final : public Callback {
 public:
  ThresholdStopper(WatchedMetric metric, double threshold, bool stop_on_batch)
      : metric_(std::move(metric)), threshold_(threshold), stop_on_batch_(stop_on_batch) {}

  std::string name() const override { return "ThresholdStopper"; }
  void require(const State& state) const override { metric_.require(state); }
  void after_load(State& state, Logger&) override { require(state); }
  void eval_end(State& state, Logger&) override {
    if (!state.evaluation_cut) look(state);
  }
  void epoch_end(State& state, Logger&) override { look(state); }
  void batch_end(State& state, Logger&) override {
    if (stop_on_batch_) look(state);
  }

 private:
  void look(State& state) {
    if (metric_.is_of(state) && metric_.better(metric_.value(state), threshold_, state))
      state.stop_training();
  }

  WatchedMetric metric_;
  double threshold_;
  bool stop_on_batch_;
};

// Ends the run with an error on all ranks when the loss of a batch is not a number.
// composer.callbacks.NaNMonitor.
class NaNMonitor final : public Callback {
 public:
  std::string name() const override { return "NaNMonitor"; }
  // Throws OperatingError, before the optimizer takes the step.
  void after_train_batch(State& state, Logger& logger) override;
};

}  // namespace tutti

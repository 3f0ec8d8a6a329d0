#pragma once

#include "training/callbacks/stoppers/watched_metric.h"
#include "training/engine/callback.h"

namespace tutti {

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

}  // namespace tutti

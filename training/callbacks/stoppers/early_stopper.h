#pragma once

#include <optional>

#include "training/callbacks/stoppers/watched_metric.h"
#include "training/engine/callback.h"

namespace tutti {

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

}  // namespace tutti

#pragma once

#include <optional>

#include "algorithms/loop/options.h"
#include "recipe/time/time.h"
#include "training/engine/algorithm.h"

namespace tutti {

// The learning rate after `update` updates (from 1) of torch.optim.swa_utils.SWALR: moves from `lr`, the rate
// of the schedule, to `swa_lr` within `anneal_steps` updates.
double swa_learning_rate(double lr, double swa_lr, int64_t update, int64_t anneal_steps,
                         AnnealStrategy strategy);

// Stochastic weight averaging: from swa_start on, averages the weights at every update_interval. At swa_end,
// or at the end of training, the averages become the weights. Buffers are those of the last update. Izmailov
// et al. 2018, arXiv:1803.05407. composer.algorithms.SWA.
class SWA final : public Algorithm {
 public:
  using Options = SWAOptions;

  // Throws UserError for options that do not fit together.
  explicit SWA(const Options& options);

  std::string name() const override { return "SWA"; }
  Needs needs() const override { return {.excludes = {{name(), "training ends with one average"}}}; }
  void require(const State& state) const override;  // warns if swa_start is never reached
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;
  int64_t averaged() const { return averaged_; }  // updates so far

  std::string state() const override;
  void restore(const std::string& json) override;
  NamedTensors state_tensors() override { return averages_; }

 private:
  void update(State& state);
  void average(const State& state);
  void set_rate(State& state) const;
  void complete(State& state);
  void serve(State& state) const;

  Options options_;
  Event update_event_;
  int64_t counter_ = 0;  // update events since swa_start
  int64_t averaged_ = 0;
  double swa_lr_ = 0.0;
  bool completed_ = false;
  NamedTensors averages_;
};

}  // namespace tutti

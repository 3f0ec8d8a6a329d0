#pragma once

#include <memory>
#include <string>
#include <vector>

#include "algorithms/surgery/options.h"
#include "models/layers/residual_block.h"
#include "recipe/time/time.h"
#include "training/engine/algorithm.h"

namespace tutti {

// Makes the blocks of this name (models/layers/residual_block.h, which also explains custom blocks) skip
// their main branches at random in training: for all samples, or sample by sample. Block i of n, from 0, has
// the rate drop_rate, or drop_rate (i + 1) / n (linear). Weights and their names stay. Returns the blocks.
// composer.functional.apply_stochastic_depth.
std::vector<std::shared_ptr<ResidualBlock>> apply_stochastic_depth(Layer& model,
                                                                   const StochasticDepthOptions& options);

// apply_stochastic_depth at INIT. BATCH_START: over the first `drop_warmup` of the training the rates grow
// from 0; then the full rates hold, except in Composer's mode, where the last rates stay. Logs
// "stochastic_depth/num_stochastic_layers", and with a warm-up "stochastic_depth/drop_rate".
// composer.algorithms.StochasticDepth.
class StochasticDepth final : public Algorithm {
 public:
  // Throws UserError for a rate outside [0, 1], and for a warm-up of per-sample rates.
  explicit StochasticDepth(StochasticDepthOptions options,
                           const Time& drop_warmup = {0.0, TimeUnit::kDuration});

  std::string name() const override { return "StochasticDepth"; }
  Needs needs() const override { return {.required_on_load = true}; }
  void require(const State& state) const override;
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

  // The drop_rate of the last batch.
  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  void operate(State& state);
  void set_rate(double drop_rate);

  StochasticDepthOptions options_;
  Time drop_warmup_;
  double drop_rate_;  // now
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
};

}  // namespace tutti

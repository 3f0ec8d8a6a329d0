#pragma once

#include <ATen/ops/zeros.h>

#include <memory>
#include <string>

#include "job/job.h"
#include "training/engine/algorithm.h"
#include "training/state.h"

namespace tutti {

// As many features as possible at once, except [model] and features that depend on it. 4 batches an epoch,
// the last of them short; a checkpoint after each.
inline constexpr const char* kEverything = R"(
seed = 5
[data.train]
kind = "synthetic"
samples = 90
batch_size = 24
shuffle = true
[data.eval]
kind = "synthetic"
samples = 30
[[evaluators]]
label = "often"
kind = "synthetic"
samples = 50
subset_num_batches = 1
eval_interval = "3ba"
[optimizer]
kind = "decoupled_adamw"
lr = 0.01
no_decay = ["*.bias"]
[checkpoint]
interval = "1ba"
[precision]
init_scale = 1e6
growth_interval = 3
[[callbacks]]
kind = "lr_monitor"
[[callbacks]]
kind = "speed_monitor"
window_size = 2
[[callbacks]]
kind = "runtime_estimator"
[[callbacks]]
kind = "memory_monitor"
[[callbacks]]
kind = "optimizer_monitor"
batch_log_interval = 3
[[callbacks]]
kind = "activation_monitor"
interval = "2ba"
[[callbacks]]
kind = "early_stopper"
monitor = "CrossEntropy"
comp = "less"
patience = "2ep"
[[callbacks]]
kind = "threshold_stopper"
monitor = "CrossEntropy"
comp = "less"
threshold = 0.0
[[algorithms]]
kind = "gradient_clipping"
clipping_type = "norm"
clipping_threshold = 0.5
[[loggers]]
kind = "csv"
[train]
max_duration = "3ep"
precision = "amp_fp16"
grad_accum = [[0, 1], [2, 3], [7, 2]]
)";

// The recipe with `more` behind the kind of each of its datasets.
inline std::string with_samples(std::string recipe, const std::string& more) {
  const std::string heading = "kind = \"synthetic\"\n";
  for (auto at = recipe.find(heading); at != std::string::npos; at = recipe.find(heading, at + 1))
    recipe.insert(at + heading.size(), more);
  return recipe;
}

// Logs its state: half of it is a number, half a tensor.
class SteeringByLoss final : public Algorithm {
 public:
  std::string name() const override { return "SteeringByLoss"; }
  bool match(Event event, const State&) const override { return event == Event::kBatchEnd; }
  void apply(Event, State& state, Logger& logger) override {
    ++steps_;
    sum_.add_(state.train_loss);
    logger.log_metrics({{"steering/sum", sum_.item<double>()}, {"steering/steps", double(steps_)}});
  }
  std::string state() const override { return std::to_string(steps_); }
  void restore(const std::string& text) override { steps_ = std::stoi(text); }
  NamedTensors state_tensors() override { return {{"sum", sum_}}; }

 private:
  int steps_ = 0;
  at::Tensor sum_ = at::zeros({1}, at::kDouble);
};

inline void add_steering(Job& job) {
  job.listeners = [](int) {
    Engine::Options listeners;
    listeners.algorithms = {std::make_shared<SteeringByLoss>()};
    return listeners;
  };
}

}  // namespace tutti

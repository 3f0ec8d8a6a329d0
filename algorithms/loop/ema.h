#pragma once

#include <optional>
#include <string>
#include <vector>

#include "algorithms/loop/options.h"
#include "io/checkpoint/tensor_source.h"
#include "recipe/time/time.h"
#include "training/engine/algorithm.h"

namespace tutti {

// averages = smoothing * averages + (1 - smoothing) * weights, in place. The lists have equal lengths, shapes
// and dtypes; integers are averaged in float32 and truncated. composer.functional.compute_ema.
void compute_ema(const std::vector<at::Tensor>& weights, const std::vector<at::Tensor>& averages,
                 double smoothing = 0.99);

// In checkpoints: of EMA's state, and before the names of averages.
inline constexpr const char* kSavedEma = "algorithms/EMA";

// The checkpoint's name of the tensor that evaluations of its run use for the model's tensor `name`: the
// average, if any, else the tensor.
std::string evaluated_name(const TensorSource& saved, const std::string& name);

// Keeps an exponential moving average of parameters and buffers. Evaluations, predictions and exports use the
// averages; checkpoints hold averages and originals. composer.algorithms.EMA.
class EMA final : public Algorithm {
 public:
  using Options = EMAOptions;

  // Throws UserError for options that do not fit together.
  explicit EMA(const Options& options);

  std::string name() const override { return "EMA"; }
  Needs needs() const override { return {.excludes = {{name(), "evaluations use one average"}}}; }
  void require(const State& state) const override;  // warns if ema_start is never reached
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;
  double smoothing() const { return smoothing_; }

  std::string state() const override { return started_ ? "started" : ""; }
  void restore(const std::string&) override { started_ = true; }
  NamedTensors state_tensors() override { return averages_; }

 private:
  Event update_event() const;
  bool is_update(Event event, const State& state) const;
  void update(State& state);
  void publish(State& state) const;
  void swap(State& state);

  Time start_;
  Time interval_;
  double smoothing_;
  bool started_ = false;
  bool swapped_ = false;  // the model has the averages
  NamedTensors averages_;
};

}  // namespace tutti

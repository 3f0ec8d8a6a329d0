#pragma once

#include <memory>

#include "algorithms/surgery/options.h"
#include "models/model.h"
#include "training/engine/algorithm.h"

namespace tutti {

// A model that costs nothing: its outputs are the targets (the array "target", else "labels", else the last
// of the batch) times its one parameter, "weights", which begins with 1.5; its loss is their mean squared
// difference from the targets. composer's NoOpModelClass.
class NoOpModelClass final : public Model {
 public:
  // `original` counts the tokens of batches still.
  explicit NoOpModelClass(std::shared_ptr<const Model> original);
  TensorTree forward(const Batch& batch) override;
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;
  at::Tensor losses(const Outputs& outputs, const Batch& batch) override;
  int64_t tokens(const Batch& batch) const override { return original_->tokens(batch); }
  std::vector<std::string> get_metrics(bool) const override { return {"MeanSquaredError"}; }
  void update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) override;
  const char* kind() const override { return "NoOpModelClass"; }

 private:
  std::shared_ptr<const Model> original_;
  Parameter& weights_;
};

// Puts a NoOpModelClass in the place of the model at INIT, before all other surgery, to measure what remains
// of a run without a model: mostly the loading of data. composer.algorithms.NoOpModel.
class NoOpModel final : public Algorithm {
 public:
  std::string name() const override { return "NoOpModel"; }
  Needs needs() const override { return {.first = true, .required_on_load = true}; }
  bool match(Event event, const State&) const override { return event == Event::kInit; }
  void apply(Event event, State& state, Logger& logger) override;
};

}  // namespace tutti

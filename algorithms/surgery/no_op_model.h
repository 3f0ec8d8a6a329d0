#pragma once

#include <memory>

#include "algorithms/surgery/options.h"
#include "models/model.h"
#include "training/engine/algorithm.h"

namespace tutti {

// A model that costs nothing. Its outputs are the targets (the array "target", else "labels", else the last
// of the batch) times its only parameter, "weights", initially 1.5. Its loss is the mean squared difference
// of outputs and targets. composer's NoOpModelClass.
class NoOpModelClass final : public Model {
 public:
  // `original` still counts the tokens of batches.
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

// Replaces the model by a NoOpModelClass at INIT, before all other surgery, to measure the cost of a run
// without its model: mostly the loading of data. composer.algorithms.NoOpModel.
class NoOpModel final : public Algorithm {
 public:
  std::string name() const override { return "NoOpModel"; }
  Needs needs() const override { return {.first = true, .required_on_load = true}; }
  bool match(Event event, const State&) const override { return event == Event::kInit; }
  void apply(Event event, State& state, Logger& logger) override;
};

}  // namespace tutti

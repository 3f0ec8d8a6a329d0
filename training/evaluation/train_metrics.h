#pragma once

#include <span>
#include <string>
#include <vector>

#include "training/state.h"

namespace tutti {

// The metrics that a model keeps in training (Model::get_metrics): of each step's batch, from the outputs
// that it is trained by; Composer resets them every batch too. Their sums over ranks travel in the verdict.
class TrainMetrics {
 public:
  explicit TrainMetrics(const State& state);

  bool any() const { return !metrics_.empty(); }
  void reset();
  void set_share(double share);  // Metric::set_share, of the next updates
  // A microbatch as it was before algorithms changed it for the forward pass, and the outputs of that.
  void update(Model& model, const Batch& batch, const Outputs& outputs);

  std::vector<double> sums() const;
  // Given the sums of all ranks: the values go to state.metric_values, "train/MulticlassAccuracy".
  void take(std::span<const double> sums, State& state);

 private:
  std::vector<MetricPtr> metrics_;
};

}  // namespace tutti

#pragma once

#include <span>
#include <string>
#include <vector>

#include "training/state.h"

namespace tutti {

// The metrics of a model in training (Model::get_metrics) and the parts of its loss, of each step's batch,
// from the outputs of the training pass. As in Composer, reset every batch. Their sums over ranks are part of
// the verdict.
class TrainMetrics {
 public:
  // `parts`: of the rank's batch, each with sums of its own.
  explicit TrainMetrics(const State& state, int64_t parts = 1);

  bool any() const { return !parts_.front().empty(); }
  void reset();
  // The next updates are of this part.
  void begin_part(std::size_t part) { part_ = part; }
  // `batch`: a microbatch, before algorithms' changes for the forward pass; `outputs`: of that pass.
  void update(const Trainee& trainee, const Batch& batch, const Outputs& outputs);

  // The sums have the devices' numbers from numbers.read() on.
  void add_to(LateNumbers& numbers);
  std::vector<double> sums(std::size_t part = 0) const;
  // Sets state.metric_values ("train/MulticlassAccuracy", "train/loss/boxes") from the sums over ranks.
  void store_values(std::span<const double> sums, State& state);

 private:
  std::vector<std::vector<MetricPtr>> parts_;
  std::size_t part_ = 0;
};

}  // namespace tutti

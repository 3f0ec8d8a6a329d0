#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/run_state.h"
#include "recipe/setting.h"

namespace tutti {

// [checkpoint] best: which checkpoints are kept for their metric.
struct BestSettings {
  Setting metric;  // see logged_name (training/metrics/logged_metrics.h)
  bool less_is_better = false;
  int keep = 1;

  // Reads a resolved table.
  static BestSettings read(const Setting& table);
  bool better(double one, double other) const { return less_is_better ? one < other : one > other; }
};

// The best values of a run so far, at most BestSettings::keep.
class BestValues {
 public:
  explicit BestValues(BestSettings settings) : settings_(std::move(settings)) {}

  // A new step: nothing is measured.
  void begin_step() { state_.measured = false; }
  // The metric after this step. True if it is one of the best.
  bool observe(double value);

  const BestState& state() const { return state_; }
  void restore(const BestState& state) { state_ = state; }

 private:
  BestSettings settings_;
  BestState state_;
};

// The names of the best checkpoints, best first; the earlier of equal ones first. `values`: the metric after
// the step of each checkpoint, by name, in the order of time.
std::vector<std::string> best_checkpoints(const BestSettings& settings,
                                          const std::vector<std::pair<std::string, double>>& values);

}  // namespace tutti

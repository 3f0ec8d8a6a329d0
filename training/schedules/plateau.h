#pragma once

#include <string>

#include "io/checkpoint/run_state.h"
#include "recipe/setting.h"

namespace tutti {

// reduce_lr_on_plateau: lowers the learning rate when a metric has stopped improving. As torch's
// ReduceLROnPlateau: a value that is not a number is no improvement.
class Plateau {
 public:
  // `section`: a resolved [scheduler] of that kind; `base_lr`: the optimizer's.
  Plateau(const Setting& section, double base_lr);

  const std::string& monitor() const { return monitor_; }  // the metric's name
  double multiplier() const { return state_.multiplier; }  // of base_lr

  // The metric's value at an evaluation. Whether the rate is lower from here on.
  bool observe(double value);

  const PlateauState& state() const { return state_; }
  void restore(const PlateauState& state) { state_ = state; }

 private:
  bool improves(double value) const;
  bool reduce();

  std::string monitor_;
  bool lower_is_better_;
  bool relative_;  // to the best value so far
  double threshold_;
  double factor_, min_lr_, eps_;
  int64_t patience_, cooldown_;  // evaluations
  double base_lr_;
  PlateauState state_;
};

}  // namespace tutti

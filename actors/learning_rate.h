#pragma once

#include <optional>

#include "actors/evaluation.h"
#include "training/plateau.h"
#include "training/schedule.h"
#include "training/trainee.h"

namespace tutti {

// What each step multiplies with: the optimizer's rate as [scheduler] changes it, by time or by what
// evaluations find. A pure function of what all ranks know, so that all come to the same.
class LearningRate {
 public:
  LearningRate() = default;  // 0 throughout
  // `recipe` resolved; `evaluates`: whether there is anything to evaluate on, at an interval. Throws
  // UserError.
  LearningRate(const Setting& recipe, const Trainee& trainee, Horizon horizon, bool evaluates);

  // Of the batch that begins at `now`.
  double at(const Timestamp& now) const;

  // What an evaluation found. Whether the rate is lower for it.
  bool observe(const NamedValues& metrics);

  PlateauState state() const { return plateau_ ? plateau_->state() : PlateauState(); }
  void restore(const PlateauState& state);

 private:
  double base_ = 0.0;
  Schedule schedule_;  // empty: the rate stays
  std::optional<Plateau> plateau_;
};

}  // namespace tutti

#include "training/schedules/plateau.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tutti {

Plateau::Plateau(const Setting& section, double base_lr)
    : monitor_(section.at("monitor").text()),
      lower_is_better_(section.at("mode").text() == "min"),
      relative_(section.at("threshold_mode").text() == "rel"),
      threshold_(section.at("threshold").number()),
      factor_(section.at("factor").number()),
      min_lr_(section.at("min_lr").number()),
      eps_(section.at("eps").number()),
      patience_(section.at("patience").integer()),
      cooldown_(section.at("cooldown").integer()),
      base_lr_(base_lr) {}

bool Plateau::observe(double value) {
  if (improves(value)) {
    constexpr double kMost = std::numeric_limits<double>::max();
    state_.best = std::clamp(value, -kMost, kMost);  // a checkpoint's JSON has no infinity
    state_.has_best = true;
    state_.bad = 0;
  } else {
    ++state_.bad;
  }
  if (state_.cooldown > 0) {
    --state_.cooldown;
    state_.bad = 0;
  }
  if (state_.bad <= patience_) return false;
  state_.cooldown = cooldown_;
  state_.bad = 0;
  return reduce();
}

bool Plateau::improves(double value) const {
  const double sign = lower_is_better_ ? 1.0 : -1.0;
  if (!state_.has_best) return sign * value < std::numeric_limits<double>::infinity();
  const double bar = relative_ ? state_.best * (1.0 - sign * threshold_) : state_.best - sign * threshold_;
  return sign * value < sign * bar;
}

bool Plateau::reduce() {
  const double old_lr = base_lr_ * state_.multiplier;
  const double new_lr = std::max(old_lr * factor_, min_lr_);
  if (!(old_lr - new_lr > eps_)) return false;
  state_.multiplier = new_lr / base_lr_;
  return true;
}

}  // namespace tutti

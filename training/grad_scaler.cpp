#include "training/grad_scaler.h"

#include <cmath>
#include <limits>

namespace tutti {

GradScaler::GradScaler(const Setting& section)
    : growth_factor_(section.at("growth_factor").number()),
      backoff_factor_(section.at("backoff_factor").number()),
      growth_interval_(section.at("growth_interval").integer()) {
  state_.scale = static_cast<float>(section.at("init_scale").number());
}

double GradScaler::loss_scale() const {
  if (state_.usual_weight <= 0) return state_.scale;
  return std::ldexp(state_.scale, -std::ilogb(state_.usual_weight));
}

// torch's scale is a float32, and does not grow into infinity. Nor does it shrink to 0 here: nothing could be
// divided by that.
void GradScaler::update(bool overflowed) {
  const double factor = overflowed ? backoff_factor_ : growth_factor_;
  const auto changed = static_cast<float>(state_.scale * factor);
  if (overflowed) {
    state_.growth_tracker = 0;
    if (changed >= std::numeric_limits<float>::min()) state_.scale = changed;
  } else if (++state_.growth_tracker >= growth_interval_) {
    state_.growth_tracker = 0;
    if (std::isfinite(changed)) state_.scale = changed;
  }
}

void GradScaler::restore(const GradScalerState& state) {
  if (state.scale > 0) state_ = state;
}

}  // namespace tutti

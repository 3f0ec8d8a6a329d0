#include "training/loss_scale.h"

#include <sstream>

namespace tutti {

LossScale::LossScale(const Precision& precision, int data_world) : data_world_(data_world) {
  if (precision.scales_loss()) scaler_.emplace(precision.loss_scaling);
}

double LossScale::begin_step(const std::function<double()>& first_weight) {
  if (!scaler_) return 1;
  if (scaler_->usual_weight() == 0) scaler_->set_usual_weight(first_weight() / data_world_);
  return scaler_->loss_scale();
}

void LossScale::end_step(double weight, bool overflowed) {
  if (!scaler_) return;
  scaler_->set_usual_weight(weight / data_world_);
  scaler_->update(overflowed);
}

std::string LossScale::text() const {
  std::ostringstream text;
  text << state().scale;
  return text.str();
}

void LossScale::restore(const GradScalerState& state) {
  if (scaler_) scaler_->restore(state);
}

}  // namespace tutti

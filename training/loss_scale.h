#pragma once

#include <functional>
#include <optional>
#include <string>

#include "training/precision.h"

namespace tutti {

// The factor of the losses of each step, equal on all ranks. Always 1 where losses are not scaled.
class LossScale {
 public:
  LossScale(const Precision& precision, int data_world);

  bool scales() const { return scaler_.has_value(); }
  // Before a step. `first_weight`: the loss weight of the batch over all ranks, for the first scale;
  // collective and called before the first step alone.
  double begin_step(const std::function<double()>& first_weight);
  // After a step whose losses weigh `weight` over all ranks. `overflowed`: its gradients are not finite.
  void end_step(double weight, bool overflowed);

  std::string text() const;  // "65536"

  // Zeros if losses are not scaled.
  GradScalerState state() const { return scaler_ ? scaler_->state() : GradScalerState(); }
  void restore(const GradScalerState& state);

 private:
  std::optional<GradScaler> scaler_;
  double data_world_;
};

}  // namespace tutti

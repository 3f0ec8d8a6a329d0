#pragma once

#include "io/checkpoint/run_state.h"
#include "recipe/setting.h"

namespace tutti {

// By what the losses of amp_fp16 are multiplied before backward, so that small gradients are not lost in
// float16: torch.amp.GradScaler. A scale that lets a gradient overflow is too large, one that has not for
// long may be too small. Gradients are divided by it in the optimizer's kernel.
//
// A pure function of what all ranks know, so that all come to the same.
class GradScaler {
 public:
  // [precision] of a resolved recipe.
  explicit GradScaler(const Setting& section);

  // torch's scale of a mean loss.
  double scale() const { return state_.scale; }

  // What losses whose gradients are sums are multiplied by: the scale, over about the weight that a rank's
  // losses have together, so that gradients in float16 are as large as torch's. A power of two, which costs
  // no digit.
  double loss_scale() const;
  // A rank's share of a step's loss weight, as the last step had it; 0 = there was none yet.
  double usual_weight() const { return state_.usual_weight; }
  void set_usual_weight(double weight) { state_.usual_weight = weight; }

  // A step is over; whether its gradients overflowed.
  void update(bool overflowed);

  const GradScalerState& state() const { return state_; }
  void restore(const GradScalerState& state);  // one that never scaled is passed over

 private:
  double growth_factor_, backoff_factor_;
  int64_t growth_interval_;
  GradScalerState state_;
};

}  // namespace tutti

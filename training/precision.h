#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "io/checkpoint/run_state.h"
#include "models/layers/layer.h"
#include "recipe/setting.h"

namespace tutti {

// How losses under amp_fp16 are scaled: the keys of [precision].
struct LossScaling {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;  // steps
};

// What a run computes in: [train] precision, and what [precision] sets apart from it.
struct Precision {
  std::string name = "fp32";               // Composer's: "fp32", "amp_fp16", "amp_bf16"
  std::optional<at::ScalarType> autocast;  // of forward passes and losses, where they may; none = as it comes
  // Of the model's floating tensors, the optimizer's state being its parameters'; none = the model's own.
  std::optional<at::ScalarType> param_dtype, buffer_dtype;
  std::optional<at::ScalarType> reduce_dtype;  // gradients are summed over ranks in; none = the parameters'
  LossScaling loss_scaling;

  // Gradients in float16 leave out what is small: losses are scaled up before backward.
  bool scales_loss() const { return autocast == at::kHalf; }

  // Of a resolved recipe. Throws UserError for what does not go together.
  static Precision read(const Setting& recipe);
};

// Gives parameters and buffers of a model that is materialised their dtypes.
void cast(Layer& model, const Precision& precision);

// By what the losses of amp_fp16 are multiplied before backward, so that small gradients are not lost in
// float16: torch.amp.GradScaler. A scale that lets a gradient overflow is too large, one that has not for
// long may be too small. Gradients are divided by it in the optimizer's kernel.
//
// A pure function of what all ranks know, so that all come to the same.
class GradScaler {
 public:
  explicit GradScaler(const LossScaling& options);

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
  LossScaling options_;
  GradScalerState state_;
};

}  // namespace tutti

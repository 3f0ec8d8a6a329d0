#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "io/checkpoint/run_state.h"
#include "models/layers/layer.h"
#include "recipe/setting.h"
#include "training/settings.h"

namespace tutti {

// The dtypes of a run, by [train] precision and [precision].
struct Precision {
  std::string name = "fp32";               // Composer's: "fp32", "amp_fp16", "amp_bf16"
  std::optional<at::ScalarType> autocast;  // of forward passes and losses; none = no autocast
  // Of floating-point parameters (with their optimizer state) and buffers; none = the model's own.
  std::optional<at::ScalarType> param_dtype, buffer_dtype;
  std::optional<at::ScalarType> reduce_dtype;  // of sums of gradients over ranks; none = the parameters'
  LossScaling loss_scaling;

  // Small gradients underflow in float16, so losses are scaled up before backward.
  bool scales_loss() const { return autocast == at::kHalf; }

  // Of a resolved recipe. Throws UserError for invalid combinations.
  static Precision read(const Setting& recipe);
};

// Converts a parameter to its dtype.
void cast_parameter(at::Tensor& parameter, const Precision& precision);
// Converts the parameters and buffers of a model to their dtypes.
void cast(Layer& model, const Precision& precision);

// Multiplies losses under amp_fp16 by a scale before backward, so that small gradients do not underflow in
// float16: torch.amp.GradScaler. The scale shrinks when a gradient overflows, and grows after growth_interval
// steps without overflow. The optimizer's kernel divides gradients by the scale.
//
// A pure function of facts that all ranks know, so equal on all ranks.
class GradScaler {
 public:
  explicit GradScaler(const LossScaling& options);

  // torch's scale of a mean loss.
  double scale() const { return state_.scale; }

  // The factor for losses whose gradients are sums: the scale divided by a power of two near usual_weight, so
  // that gradients in float16 are as large as torch's.
  double loss_scale() const;
  // A rank's share of the loss weight of the last step; 0 = no step yet.
  double usual_weight() const { return state_.usual_weight; }
  void set_usual_weight(double weight) { state_.usual_weight = weight; }

  // After each step.
  void update(bool overflowed);

  const GradScalerState& state() const { return state_; }
  void restore(const GradScalerState& state);  // ignores a state without a scale

 private:
  LossScaling options_;
  GradScalerState state_;
};

}  // namespace tutti

#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "models/layers/layer.h"
#include "recipe/setting.h"

namespace tutti {

// What a run computes in: [train] precision, and what [precision] sets apart from it.
struct Precision {
  std::string name = "fp32";               // Composer's: "fp32", "amp_fp16", "amp_bf16"
  std::optional<at::ScalarType> autocast;  // of forward passes and losses, where they may; none = as it comes
  // Of the model's floating tensors, the optimizer's state being its parameters'; none = the model's own.
  std::optional<at::ScalarType> param_dtype, buffer_dtype;
  std::optional<at::ScalarType> reduce_dtype;  // gradients are summed over ranks in; none = the parameters'

  // Gradients in float16 leave out what is small: losses are scaled up before backward.
  bool scales_loss() const { return autocast == at::kHalf; }
};

// As a resolved recipe has it. Throws UserError for what does not go together.
Precision precision_of(const Setting& recipe);

// Gives parameters and buffers of a model that is materialised their dtypes.
void cast(Layer& model, const Precision& precision);

}  // namespace tutti

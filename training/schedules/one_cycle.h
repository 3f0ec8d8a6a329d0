#pragma once

#include <cstdint>
#include <functional>

#include "recipe/setting.h"

namespace tutti {

// What the optimizer's learning rate is multiplied by once a scheduler of PyTorch has been stepped `steps`
// times: its last_epoch.
using Curve = std::function<double(int64_t steps)>;

// What curves must know of the run.
struct CurveOptions {
  double base_lr = 1.0;         // the optimizer's
  double ratio = 1.0;           // the scale-schedule ratio
  double training_steps = 0.0;  // of the scheduler, until training ends; 0 = unknown
};

// A rate that the recipe names, as a multiple of the optimizer's. Throws UserError where that is 0.
double multiple_of_base(const Setting& rate, double base_lr);

// torch's OneCycleLR, from Smith and Topin, "Super-convergence", 2018: up from max_lr / div_factor to max_lr,
// and down to 1 / (div_factor final_div_factor) of it, with three_phase by way of where it began. Momentum is
// not cycled. It keeps its last rate where torch would raise an error, or for one step extrapolate. Throws
// UserError where the training is known to take more steps.
Curve one_cycle(const Setting& section, const CurveOptions& run);

}  // namespace tutti

#pragma once

#include <cstdint>
#include <functional>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// The multiplier of the learning rate after `steps` steps of a PyTorch scheduler (its last_epoch).
using Curve = std::function<double(int64_t steps)>;

// Facts of the run.
struct CurveOptions {
  double base_lr = 1.0;         // the optimizer's
  double ratio = 1.0;           // the scale-schedule ratio
  double training_steps = 0.0;  // scheduler steps of the whole training; 0 = unknown
};

// A rate of the recipe as a multiple of the optimizer's. Throws UserError if the latter is 0.
double multiple_of_base(const Setting& rate, double base_lr);

// torch's OneCycleLR, from Smith and Topin, "Super-convergence", 2018: up from max_lr / div_factor to
// max_lr, then down to the initial rate / final_div_factor; with three_phase by way of the initial rate.
// Momentum is not cycled. After the cycle the last rate stays, where torch raises an error (or extrapolates
// one step). Throws UserError if the training is known to be longer.
Curve one_cycle(const Setting& section, const CurveOptions& run);
Entry one_cycle_entry();

}  // namespace tutti

#pragma once

#include "training/schedules/curve.h"

namespace tutti {

// torch's OneCycleLR, from Smith and Topin, "Super-convergence", 2018: up from max_lr / div_factor to max_lr,
// and down to 1 / (div_factor final_div_factor) of it, with three_phase by way of where it began. Momentum is
// not cycled. It keeps its last rate where torch would raise an error, or for one step extrapolate. Throws
// UserError where the training is known to take more steps.
Curve one_cycle(const Setting& section, const CurveTerms& run);

}  // namespace tutti

#pragma once

#include "algorithms/surgery/options.h"

namespace tutti {

struct State;

// Reads the folder of `options`, in PEFT's layout (models/hub/adapter.h), into the model's adapters and
// modules_to_save; a rank with a share its rows. Throws UserError if the folder's adapter differs from the
// options', or is for other layers.
void read_adapter(State& state, const LoraOptions& options);

}  // namespace tutti

#pragma once

#include <functional>

#include "training/engine/engine.h"
#include "training/evaluation/evaluator.h"
#include "training/state.h"

namespace tutti {

using TakeOutputs = std::function<void(const Outputs& outputs)>;

// Runs the model over an evaluator's data, in the data's order, in batches of all ranks' size or, where it is
// smaller, device_eval_microbatch_size, and gives each batch's outputs. On this rank alone. Runs the events
// PREDICT_START to PREDICT_END; `take` may be empty.
void predict(State& state, Engine& engine, const Evaluator& evaluator, const TakeOutputs& take);

}  // namespace tutti

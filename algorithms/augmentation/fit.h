#pragma once

#include <functional>
#include <string>

#include "tensors/tree.h"
#include "training/engine/algorithm.h"
#include "training/state.h"

namespace tutti {

// Checks that a run fits an algorithm, for Listener::require.

// Runs the check on one sample of the training data, if the run has data. An error becomes the algorithm's,
// with the line of the recipe.
void require_of_sample(const Algorithm& algorithm, const State& state,
                       const std::function<void(Batch& sample)>& check);

// Throws UserError for inputs other than [N, C, H, W].
void require_images(const at::Tensor& input);

// Throws UserError, which ends with the remedy, if the model's loss takes class indices alone.
void require_dense_targets(const State& state, const std::string& remedy = "");

// The sample with inputs of another layout, filled with zeros.
Batch blank_sample(const SampleSpec& samples, Batch sample);

// The model's outputs, in evaluation, for a batch that an algorithm made. Throws UserError if there are none.
Outputs require_fit(const State& state, const Batch& batch);

}  // namespace tutti

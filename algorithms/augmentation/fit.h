#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace tutti {

struct State;

// Checks that a run fits an algorithm, for Listener::require and Algorithm::try_on.

// Throws UserError for inputs other than [N, C, H, W].
void require_images(const at::Tensor& input);

// Throws UserError, which ends with the remedy, if the model's loss takes class indices alone.
void require_dense_targets(const State& state, const std::string& remedy = "");

// The numbers of samples that ranks get in a batch, the fewest and the most: of full batches, and of a short
// one at the epoch's end, if the training comes so far.
std::vector<int64_t> samples_of_ranks(const State& state);

}  // namespace tutti

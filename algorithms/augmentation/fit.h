#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace tutti {

struct State;

// Checks that a run fits an algorithm, for Listener::require and Algorithm::try_on.

// Throws UserError for inputs other than [N, C, H, W].
void require_images(const at::Tensor& input);

// Throws UserError, which ends with the remedy, if the model's loss does not take such targets.
void require_dense_targets(const State& state, const std::string& remedy = "");

// The fewest and the most samples of a rank: in a full batch, and in the short batch at the epoch's end, if
// the training gets that far.
std::vector<int64_t> samples_of_ranks(const State& state);

}  // namespace tutti

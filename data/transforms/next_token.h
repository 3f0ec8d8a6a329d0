#pragma once

#include "data/transforms/options.h"
#include "data/transforms/transform.h"

namespace tutti {

// Targets [N, L] with a token for each, moved one place to the left: the target of a token is the next one.
// The last one's is kIgnoredTarget, as ignored ones stay. So transformers' causal language models take
// `labels` that are a copy of their inputs.
at::Tensor shifted_targets(const at::Tensor& targets);

// As a transform of samples: of their "target", or "input" where there is no target.
TransformPtr next_token_transform();

}  // namespace tutti

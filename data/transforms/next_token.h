#pragma once

#include "data/transforms/options.h"
#include "data/transforms/transform.h"

namespace tutti {

// Targets [N, L] moved one place to the left: the target of a token is the next token, the last target is
// kIgnoredTarget. Ignored targets stay ignored. The same as `labels` of transformers' causal language models,
// which are a copy of the inputs.
at::Tensor shifted_targets(const at::Tensor& targets);

// The same as a transform of samples' "target", or of "input" without a target.
TransformPtr next_token_transform();

}  // namespace tutti

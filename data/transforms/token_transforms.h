#pragma once

#include <vector>

#include "data/transforms/options.h"
#include "data/transforms/transform.h"

namespace tutti {

struct MaskedTokens {
  at::Tensor input;   // of the chosen tokens 80 % are mask_token_id, 10 % random, 10 % unchanged
  at::Tensor target;  // the tokens that were chosen, and kIgnoredTarget elsewhere
};

// Masks tokens, int64 of any shape, for masked language modelling (Devlin et al. 2018, section 3.1); as
// transformers.DataCollatorForLanguageModeling. Draws four uniform numbers a token: chosen or not, masked or
// not, random or not, and which random token. `filled`: false for tokens that are never chosen; undefined:
// true for all tokens.
MaskedTokens mask_tokens(const at::Tensor& tokens, const MaskTokensOptions& options, Draws& draws,
                         const at::Tensor& filled = {});

// The same as a transform of samples' "input"; "target" becomes the tokens to predict. Tokens whose
// "attention_mask" or "segments" is 0 only fill the sample up, and are never chosen.
TransformPtr mask_tokens_transform(const MaskTokensOptions& options);

// Targets [N, L] moved one place to the left: the target of a token is the next token, the last target is
// kIgnoredTarget. Ignored targets stay ignored. The same as `labels` of transformers' causal language models,
// which are a copy of the inputs.
at::Tensor shifted_targets(const at::Tensor& targets);

// The same as a transform of samples' "target", or of "input" without a target.
TransformPtr next_token_transform();

}  // namespace tutti

#pragma once

#include "training/state.h"

namespace tutti {

// The outputs of an evaluation or a prediction for a batch: the model's eval_forward; for a batch of
// PromptRows (data/texts/prompt_rows.h) the tokens of the model's answers, int64 [N, tokens] on the CPU: the
// likeliest next tokens, and -1 from an answer's end on.
Outputs evaluated_outputs(const State& state, const Batch& batch);

// The batch with one token to generate, if there are any.
Batch with_short_answers(const Batch& batch);

// Forward passes of the model, at most, of an evaluated part of samples as in `section`.
int64_t forwards_of_part(const Setting& section);

}  // namespace tutti

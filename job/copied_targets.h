#pragma once

#include "job/job.h"

namespace tutti {

// Throws UserError with the recipe's line if a language model of the recipe's would learn to copy, or to skip
// a token: if the targets of some samples are the tokens at their own places, as a Hugging Face tokenizer's
// `labels` are, or if the transform next_token shifts targets that are the next tokens already.
void require_no_copied_targets(const Job& job);

}  // namespace tutti

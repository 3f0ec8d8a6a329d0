#pragma once

#include "cli/convert/recipe_draft.h"

namespace tutti {

// The recipe of a YAML file that trains by MosaicML's llm-foundry (scripts/train): models mpt_causal_lm and
// hf_causal_lm, loaders text and finetuning, and Composer's settings.
RecipeDraft recipe_of_foundry(const Setting& yaml);

}  // namespace tutti

#pragma once

#include <string>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// [deepspeed]: a DeepSpeed configuration, as in Composer. Needs no libtorch.
Catalog deepspeed_catalog();

// A written recipe with the values of its [deepspeed] added to tutti's own keys. Throws UserError with both
// keys if two values contradict each other.
Setting with_deepspeed(const Setting& written);

// Checks DeepSpeed's rule for a resolved recipe: batch = micro batch x accumulation x ranks, exactly.
// `global_batch`: samples of a step over all ranks. Throws UserError.
void require_deepspeed_rule(const Setting& recipe, int64_t global_batch, int world);

// The options of the section that have no effect: a line for the user; "" = none.
std::string deepspeed_advice(const Setting& recipe);

}  // namespace tutti

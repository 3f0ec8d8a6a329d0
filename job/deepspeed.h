#pragma once

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// [deepspeed]: a configuration of DeepSpeed's, as Composer takes one. Needs no libtorch.
Catalog deepspeed_catalog();

// A recipe as written, with what its [deepspeed] asks for said in tutti's own keys too; what it leaves out is
// what they say. Throws UserError that names both where the two contradict each other.
Setting with_deepspeed(const Setting& written);

// DeepSpeed's rule, of a resolved recipe: batch = micro batch x accumulation x ranks, exactly.
// `global_batch`: samples of a step over all ranks. Throws UserError.
void require_deepspeed_rule(const Setting& recipe, int64_t global_batch, int world);

}  // namespace tutti

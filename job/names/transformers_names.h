#pragma once

#include <vector>

#include "recipe/foreign_name.h"

namespace tutti {

// The arguments of transformers' TrainingArguments (5.0 and before) and of PEFT's LoraConfig that have
// another name in recipes, or none.
const std::vector<ForeignName>& transformers_names();

}  // namespace tutti

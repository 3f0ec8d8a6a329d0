#pragma once

#include <vector>

#include "recipe/foreign_name.h"

namespace tutti {

// The keys of MosaicML's llm-foundry, and the arguments of its Streaming, that have another name in recipes,
// or none.
const std::vector<ForeignName>& foundry_names();

}  // namespace tutti

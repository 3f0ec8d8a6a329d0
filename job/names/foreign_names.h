#pragma once

#include <vector>

#include "recipe/foreign_name.h"

namespace tutti {

// All names of other programs: Composer's, PyTorch's and of its usual scripts, Lightning's, llm-foundry's,
// transformers' and diffusers'. The tables are the text files beside this header.
const std::vector<ForeignName>& foreign_names();

// Those of Composer, with the classes of PyTorch that Composer's recipes name.
const std::vector<ForeignName>& composer_names();

// Those of MosaicML's llm-foundry, and of its Streaming.
const std::vector<ForeignName>& foundry_names();

}  // namespace tutti

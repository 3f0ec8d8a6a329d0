#pragma once

#include <vector>

#include "recipe/foreign_name.h"

namespace tutti {

// composer_names(), foundry_names(), transformers_names(), and arguments of PyTorch's usual scripts and of
// Lightning's Trainer.
const std::vector<ForeignName>& foreign_names();

}  // namespace tutti

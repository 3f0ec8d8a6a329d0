#pragma once

#include <vector>

#include "recipe/catalog.h"

namespace tutti {

// [scheduler]
Catalog scheduler_catalog();

// What [scheduler] may name of torch.optim.lr_scheduler, with its arguments' names and defaults.
std::vector<Entry> pytorch_schedulers();

}  // namespace tutti

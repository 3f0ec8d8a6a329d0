#pragma once

#include <vector>

#include "recipe/catalog.h"

namespace tutti {

// The catalog of [scheduler].
Catalog scheduler_catalog();

// The schedulers of torch.optim.lr_scheduler, with their argument names and defaults.
std::vector<Entry> pytorch_schedulers();

}  // namespace tutti

#pragma once

#include "recipe/catalog.h"

namespace tutti {

// [data.train] and [data.eval]
Catalog train_data_catalog();
Catalog eval_data_catalog();

}  // namespace tutti

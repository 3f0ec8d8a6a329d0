#pragma once

#include "runtime/setting.h"
#include "training/engine.h"

namespace tutti {

// What the [[callbacks]] of a resolved recipe name, in their order. Throws UserError.
Callbacks make_callbacks(const Setting& recipe);

}  // namespace tutti

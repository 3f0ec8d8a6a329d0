#pragma once

#include "recipe/setting.h"
#include "runtime/disk.h"
#include "training/engine/engine.h"

namespace tutti {

// Outside objects that callbacks use; must outlive the callbacks.
struct CallbackEnvironment {
  Disk& disk;          // for callbacks that write files
  Setting model = {};  // the resolved [model]; make_callbacks adds its recipe's section
};

// Makes the profiler and the [[callbacks]] of a resolved recipe in order, without plugins' callbacks. Throws
// UserError.
Callbacks make_callbacks(const Setting& recipe, const CallbackEnvironment& environment);

// Makes one callback from its table; null for one of a plugin.
std::shared_ptr<Callback> make_callback(const Setting& section, const CallbackEnvironment& environment);

}  // namespace tutti

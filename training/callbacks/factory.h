#pragma once

#include "recipe/setting.h"
#include "runtime/disk.h"
#include "training/engine/engine.h"

namespace tutti {

// What the [[callbacks]] of a resolved recipe name, in their order, but for those of a plugin. Some write
// files; the disk must outlive them. Throws UserError.
Callbacks make_callbacks(const Setting& recipe, Disk& disk);

// One of them, from its table.
std::shared_ptr<Callback> make_callback(const Setting& section, Disk& disk);

}  // namespace tutti

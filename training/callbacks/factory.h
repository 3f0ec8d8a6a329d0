#pragma once

#include "recipe/setting.h"
#include "runtime/disk.h"
#include "runtime/recorder.h"
#include "training/engine/engine.h"

namespace tutti {

// What callbacks use of the outside; must outlive them.
struct CallbackEnvironment {
  Disk& disk;          // some write files
  Recorder& recorder;  // of what they find on the disk
};

// What the [[callbacks]] of a resolved recipe name, in their order, but for those of a plugin. Throws
// UserError.
Callbacks make_callbacks(const Setting& recipe, const CallbackEnvironment& environment);

// One of them, from its table.
std::shared_ptr<Callback> make_callback(const Setting& section, const CallbackEnvironment& environment);

}  // namespace tutti

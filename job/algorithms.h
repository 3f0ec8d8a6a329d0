#pragma once

#include "job/plugin_library.h"
#include "recipe/setting.h"
#include "training/engine/engine.h"

namespace tutti {

// What [[algorithms]] of a resolved recipe names, in its order. `plugin` may be null where it names none.
Algorithms make_algorithms(const Setting& recipe, const PluginLibraryPtr& plugin);

}  // namespace tutti

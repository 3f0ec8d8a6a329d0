#pragma once

#include "actors/plugin_library.h"
#include "runtime/setting.h"
#include "training/engine.h"

namespace tutti {

// What [[algorithms]] of a resolved recipe names, in its order. `plugin` may be null where it names none.
Algorithms make_algorithms(const Setting& recipe, const PluginLibraryPtr& plugin);

}  // namespace tutti

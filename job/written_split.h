#pragma once

#include "recipe/setting.h"

namespace tutti {

// A written recipe with [data.eval] split = 0.1 as of kind = "split", with the split_seed that the recipe's
// seed is. If data.eval.path is set on the command line, [data.eval] is of that file, and the other keys of
// [data.train] that say what its samples are. Throws UserError for data of its own beside split. Free of
// libtorch.
Setting with_split(Setting written);

}  // namespace tutti

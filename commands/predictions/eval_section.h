#pragma once

#include <string>

#include "recipe/setting.h"

namespace tutti {

struct EvalSection {
  Setting section;   // [data.eval], not resolved
  std::string note;  // how the transforms differ from those of the training; "" = not at all
};

// [data.eval] for a recipe without one: the kind and keys of the resolved [data.train], and its transforms
// without what is drawn: random_resized_crop becomes torchvision's usual resize and center_crop, random_crop
// a center_crop, and other random transforms are left out.
EvalSection eval_section_like(const Setting& train);

// The same for a resolved [data.eval] that is a share of [data.train], of which it keeps its own keys.
EvalSection eval_section_like(const Setting& train, const Setting& split);

// The resolved section of a table of pictures as a section of a folder, without targets and `path`.
Setting picture_section_like(const Setting& table);

}  // namespace tutti

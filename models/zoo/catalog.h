#pragma once

#include <string>
#include <vector>

#include "recipe/section.h"
#include "tensors/ignored_target.h"

namespace tutti {

// The keys of [model], whatever its kind.
struct ModelKeys {
  Setting weights;  // a path, or none
  bool weights_strict = true;
  std::vector<std::string> weights_ignore;
  Setting weights_rename;  // a table, or none
  Setting freeze;          // texts, or none
  Setting loss;            // the name of a kind, a table, or none
  Given<int64_t> ignore_index = kIgnoredTarget;

  static Kind<ModelKeys> kind();
};

// The catalog of [model].
Catalog model_catalog();

}  // namespace tutti

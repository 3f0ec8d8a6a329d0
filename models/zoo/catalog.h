#pragma once

#include <string>
#include <vector>

#include "recipe/section.h"
#include "recipe/time/time.h"
#include "tensors/ignored_target.h"

namespace tutti {

// [[model.unfreeze]]: parameters that are frozen at first.
struct LaterTrained {
  Given<std::vector<std::string>> match;  // name patterns
  Given<Time> at;

  static Kind<LaterTrained> kind();
};

// The keys of [model], whatever its kind.
struct ModelKeys {
  Setting weights;  // a path, or none
  bool weights_strict = true;
  std::vector<std::string> weights_ignore;
  Setting weights_rename;  // a table, or none
  Setting freeze;          // texts, or none
  Setting unfreeze;        // tables of LaterTrained, or none
  Setting loss;            // the name of a kind, a table, or none
  Given<int64_t> ignore_index = kIgnoredTarget;

  static Kind<ModelKeys> kind();
};

// The catalog of [model].
Catalog model_catalog();

}  // namespace tutti

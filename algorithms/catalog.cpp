#include "algorithms/catalog.h"

#include "recipe/catalog.h"

namespace tutti {

using enum KeyType;

Catalog algorithm_catalog() {
  return {
      .section = "algorithms",
      .noun = "algorithm",
      .doc =
          "Algorithms that change the data, the model or the training loop. Names and meanings are "
          "Composer's.",
      .entries = {{"gradient_clipping",
                   "Limits the size of gradients; Composer's GradientClipping.",
                   {Key{"clipping_type", kText, "",
                        "norm: the norm of all gradients together; value: each number; adaptive: the norm of "
                        "each unit, "
                        "relative to the norm of its weights"}
                        .one_of({"norm", "value", "adaptive"}),
                    Key{"clipping_threshold", kNumber, "",
                        "the largest norm or value; adaptive: the largest ratio to the norm of the weights"}
                        .more_than(0)}},
                  plugin_entry("algorithm")},
      .repeated = true};
}

}  // namespace tutti

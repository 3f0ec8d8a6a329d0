#include "algorithms/catalog.h"

#include "recipe/catalog.h"

namespace tutti {

using enum KeyType;

Catalog algorithm_catalog() {
  return {
      .section = "algorithms",
      .noun = "algorithm",
      .doc = "What changes the training: the data, the model, the loop. Names and meanings are Composer's.",
      .entries = {{"gradient_clipping",
                   "Keeps gradients small; Composer's GradientClipping.",
                   {Key{"clipping_type", kText, "",
                        "norm: of all together; value: of each number; adaptive: of each unit, against its "
                        "weights'"}
                        .one_of({"norm", "value", "adaptive"}),
                    Key{"clipping_threshold", kNumber, "",
                        "the largest norm or value; adaptive: the largest part of the weights' norm"}
                        .more_than(0)}},
                  plugin_entry("algorithm")},
      .repeated = true};
}

}  // namespace tutti

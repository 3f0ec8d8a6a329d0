#include "algorithms/catalog.h"

#include <algorithm>
#include <utility>

#include "algorithms/augmentation/options.h"
#include "algorithms/loop/options.h"
#include "algorithms/surgery/options.h"
#include "recipe/catalog.h"

namespace tutti {

Catalog algorithm_catalog() {
  std::vector<Entry> entries = SurgeryKinds::entries();
  for (const auto& more : {AugmentationKinds::entries(), LoopKinds::entries()})
    entries.insert(entries.end(), more.begin(), more.end());
  std::ranges::sort(entries, {}, &Entry::name);
  entries.push_back(plugin_entry("algorithm"));
  return {.section = "algorithms",
          .noun = "algorithm",
          .doc =
              "Algorithms that change the data, the model or the training loop. Names and meanings are "
              "Composer's, those of LoRA PEFT's.",
          .entries = std::move(entries),
          .repeated = true};
}

}  // namespace tutti

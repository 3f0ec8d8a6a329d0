#include "models/zoo/catalog.h"

#include <memory>
#include <string>
#include <utility>

#include "models/loss_options.h"
#include "models/zoo/options.h"
#include "recipe/catalog.h"
#include "tensors/ignored_target.h"

namespace tutti {

using enum KeyType;

Catalog model_catalog() {
  std::vector<Entry> entries = ModelKinds::entries();
  entries.push_back(plugin_entry("model"));
  entries.push_back({"program", "The model that a C++ program passes to Trainer (commands/trainer.h)."});
  return {
      .section = "model",
      .noun = "model",
      .doc = "The model to train.",
      .keys = {{"weights", kPath, "none",
                "initial weights by parameter name: a .safetensors or .h5 file; drawn from the seed when "
                "absent"},
               Key{"loss", kKindOrTable, "none",
                   "of a model that is trained against 'target'; cross_entropy when absent"}
                   .each(std::make_shared<const Catalog>(loss_catalog())),
               {"ignore_index", kInteger, std::to_string(kIgnoredTarget),
                "a target that counts in no loss and no metric; other numbers become -100 as the data are "
                "read"}},
      .entries = std::move(entries)};
}

}  // namespace tutti

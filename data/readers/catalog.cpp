#include "data/readers/catalog.h"

#include <string>
#include <utility>

#include "data/data_settings.h"
#include "data/readers/options.h"
#include "data/readers/task_options.h"
#include "recipe/catalog.h"

namespace tutti {
namespace {

// `absent`: what holds without a batch_size. `subset`: what subset_num_batches counts.
Catalog data_catalog(const char* section, const char* doc, const std::string& absent,
                     const std::string& subset) {
  std::vector<Key> keys = DataSettings::kind().entry.keys;
  keys.front().doc += absent;
  keys.back().doc = subset + keys.back().doc;
  std::vector<Entry> entries = DataKinds::entries();
  entries.push_back(plugin_entry("dataset"));
  entries.push_back({"program", "The dataset of the training program (commands/trainer.h)."});
  return {.section = section,
          .noun = "dataset",
          .doc = doc,
          .keys = std::move(keys),
          .entries = std::move(entries)};
}

}  // namespace

Catalog train_data_catalog() {
  Catalog catalog =
      data_catalog("data.train", "The training data. Give exactly one of batch_size and device_batch_size.",
                   "", "batches of an epoch");
  catalog.keys.back().aliases = {"train_subset_num_batches"};
  const std::vector<Key> sampler = SamplerOptions::kind().entry.keys;
  catalog.keys.insert(catalog.keys.end() - 1, sampler.begin(), sampler.end());
  catalog.alternatives = {{{"batch_size", "device_batch_size"}, true}};
  return catalog;
}

Catalog eval_data_catalog() {
  Catalog catalog = data_catalog(
      "data.eval",
      "The evaluation data, or split = 0.1 in place of kind: a share of [data.train]. Of other data only the "
      "batch size defaults to that of [data.train].",
      "; default: as in training", "batches of an evaluation");
  catalog.keys.back().aliases = {"eval_subset_num_batches"};
  for (const Entry& task : TaskKinds::entries()) catalog.entries.push_back(task);
  catalog.entries.push_back(SplitOptions::kind().entry);
  catalog.default_kind = "none";
  catalog.alternatives = {{{"batch_size", "device_batch_size"}}};
  return catalog;
}

}  // namespace tutti

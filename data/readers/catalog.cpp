#include "data/readers/catalog.h"

#include <memory>
#include <utility>

#include "data/readers/options.h"
#include "data/transforms/options.h"
#include "recipe/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

Key subset_of(const char* what) {
  return Key{"subset_num_batches", kInteger, "-1", std::string(what) + "; -1 = all"}.at_least(-1);
}

std::vector<Key> loading_keys(const char* absent) {
  return {
      Key{"batch_size", kInteger, "none", std::string("samples of a step, all ranks together") + absent}
          .at_least(1)
          .at_most(kMaxBatchSamples),
      Key{"device_batch_size", kInteger, "none", "samples of a step on each rank (Composer's batch_size)"}
          .at_least(1)
          .at_most(kMaxBatchSamples),
      {"shuffle", kBoolean, "false", "a new order each epoch, drawn from the seed"},
      Key{"sampling", kText, "global",
          "global: the ranks share each epoch's samples; own: each rank reads all samples of its own file, "
          "with {rank} and {host} in the path"}
          .one_of({"global", "own"}),
      Key{"on_uneven", kText, "error",
          "for sampling = \"own\", if the ranks' files differ in length; shortest: an epoch is as long as "
          "the shortest file"}
          .one_of({"error", "shortest"}),
      {"drop_last", kBoolean, "false", "leave out the short batch that ends an epoch"},
      Key{"prefetch", kInteger, "2", "batches loaded ahead"}
          .also_named({"prefetch_factor"})
          .at_least(1)
          .at_most(1000),
      Key{"num_workers", kInteger, "0",
          "threads of a rank that read and transform samples, of all batches that it loads ahead; 0: one. "
          "Any number gives the same bits"}
          .at_least(0)
          .at_most(256),
      Key{"first_class", kInteger, "none",
          "the smallest label in the data, which becomes class 0: 1 for labels from 1 on; 0 when absent"}
          .at_least(0),
      Key{"layout", kText, "none",
          "dimensions of 'input' in the file, with N samples: it becomes float32 NCHW, as models take it; "
          "when absent, "
          "floats stay as they are, and uint8 images too unless scale, mean, std or transforms are given, "
          "which take them as NHWC, "
          "or NCHW if only their first dimension is at most 4"}
          .one_of({"NHWC", "NCHW"}),
      Key{"scale", kNumberOrNumbers, "none",
          "with mean and std: 'input' becomes float32 (input * scale - mean) / std, after all transforms; "
          "one number, or one for each channel; 1/255 for uint8 when absent, else 1"}
          .more_than(0),
      {"mean", kNumberOrNumbers, "none", "one number, or one for each channel; 0 when absent"},
      Key{"std", kNumberOrNumbers, "none", "one number, or one for each channel; 1 when absent"}.more_than(0),
      {"boxes", kTexts, "none",
       "arrays of boxes, float32 [n, 4] a sample: x1, y1, x2, y2 in pixels; crops, flips and resizes move "
       "them "
       "with the images, and arrays as large as the images, masks, in any case"},
      Key{"transforms", kTables, "none", "what happens to each sample, in this order"}.each(
          std::make_shared<const Catalog>(transform_catalog())),
  };
}

Catalog data_catalog(const char* section, const char* doc, std::vector<Key> keys) {
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
                   loading_keys(""));
  catalog.keys.push_back(subset_of("batches of an epoch").also_named({"train_subset_num_batches"}));
  catalog.alternatives = {{{"batch_size", "device_batch_size"}, true}};
  return catalog;
}

Catalog eval_data_catalog() {
  Catalog catalog =
      data_catalog("data.eval", "The evaluation data. Only the batch size defaults to that of [data.train].",
                   loading_keys("; default: as in training"));
  catalog.keys.push_back(subset_of("batches of an evaluation").also_named({"eval_subset_num_batches"}));
  catalog.default_kind = "none";
  catalog.alternatives = {{{"batch_size", "device_batch_size"}}};
  return catalog;
}

}  // namespace tutti

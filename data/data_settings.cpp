#include "data/data_settings.h"

#include <memory>

#include "data/transforms/options.h"

namespace tutti {

Kind<DataSettings> DataSettings::kind() {
  using Settings = DataSettings;
  static const auto transform_tables = std::make_shared<const Catalog>(transform_catalog());
  const auto samples = [](const char* name, auto member, const char* doc) {
    return option(name, member, doc).at_least(1).at_most(kMaxBatchSamples);
  };
  return {
      "data",
      "",
      {samples("batch_size", &Settings::batch_size, "samples of a step, all ranks together"),
       samples("device_batch_size", &Settings::device_batch_size,
               "samples of a step on each rank (Composer's batch_size)"),
       option("shuffle", &Settings::shuffle, "a new order each epoch, drawn from the seed"),
       option("sampling", &Settings::sampling,
              "global: the ranks share each epoch's samples; own: each rank reads all samples of its own "
              "file, with {rank} and {host} in the path",
              {{"global", Sampling::kGlobal}, {"own", Sampling::kOwn}}),
       option(
           "on_uneven", &Settings::on_uneven,
           "for sampling = \"own\", if the ranks' files differ in length; shortest: an epoch is as long as "
           "the shortest file")
           .one_of({"error", "shortest"}),
       option("drop_last", &Settings::drop_last, "leave out the short batch that ends an epoch"),
       option("prefetch", &Settings::prefetch, "batches loaded ahead")
           .also_named({"prefetch_factor"})
           .at_least(1)
           .at_most(1000),
       option(
           "num_workers", &Settings::num_workers,
           "threads of a rank that read and transform samples, of all batches that it loads ahead; 0: one. "
           "Any number gives the same bits")
           .at_least(0)
           .at_most(256),
       option("first_class", &Settings::first_class,
              "the smallest label in the data, which becomes class 0: 1 for labels from 1 on; 0 when absent")
           .may_be_absent()
           .at_least(0),
       option(
           "layout", &Settings::layout,
           "dimensions of 'input' in the file, with N samples: it becomes float32 NCHW, as models take it; "
           "when absent, floats stay as they are, and uint8 images too unless scale, mean, std or "
           "transforms are given, which take them as NHWC, or NCHW if only their first dimension is at "
           "most 4")
           .may_be_absent()
           .one_of({"NHWC", "NCHW"}),
       option(
           "scale", &Settings::scale,
           "with mean and std: 'input' becomes float32 (input * scale - mean) / std, after all transforms; "
           "one number, or one for each channel; 1/255 for uint8 when absent, else 1")
           .more_than(0),
       option("mean", &Settings::mean, "one number, or one for each channel; 0 when absent"),
       option("std", &Settings::std, "one number, or one for each channel; 1 when absent").more_than(0),
       option("boxes", &Settings::boxes,
              "arrays of boxes, float32 [n, 4] a sample: x1, y1, x2, y2 in pixels; crops, flips and resizes "
              "move them with the images, and arrays as large as the images, masks, in any case")
           .may_be_absent(),
       option("transforms", &Settings::transforms, "what happens to each sample, in this order")
           .each(transform_tables)
           .as(KeyType::kTables),
       option("subset_num_batches", &Settings::subset_num_batches, "; -1 = all").at_least(-1)}};
}

}  // namespace tutti

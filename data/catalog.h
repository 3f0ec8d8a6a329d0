#pragma once

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

inline constexpr double kMaxBatchSamples = 1e9;

// [data.train] and [data.eval]
Catalog train_data_catalog();
Catalog eval_data_catalog();

// How a data section of any kind reads its samples.
struct DataSettings {
  bool shuffle = false;
  bool drop_last = false;
  int64_t max_batches = -1;  // of an epoch or an evaluation; -1 = all
  int prefetch = 2;          // batches loaded ahead
  int num_workers = 0;       // threads that read a batch; 0 = the Loader's own

  static DataSettings read(const Setting& section);
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recipe/section.h"

namespace tutti {

inline constexpr double kMaxBatchSamples = 1e9;

// How [data.train], [data.eval] or one of [[evaluators]] goes through its samples, and what it makes of them,
// for all kinds. Free of libtorch.
struct DataSettings {
  enum class Sampling { kGlobal, kOwn };

  Given<std::optional<int64_t>> batch_size, device_batch_size;  // samples of a step: of all ranks, of each
  bool shuffle = false;
  Given<Sampling> sampling = Sampling::kGlobal;
  std::string on_uneven = "error";
  Given<bool> drop_last = false;
  int prefetch = 2;     // batches loaded ahead
  int num_workers = 0;  // threads that read batches; 0 = the Loader's own
  Given<int64_t> first_class = 0;
  Given<std::string> layout;        // "" = not given
  Given<Numbers> scale, mean, std;  // empty = not given
  Given<std::vector<std::string>> boxes;
  Setting transforms;                      // tables, or none
  Given<int64_t> subset_num_batches = -1;  // of an epoch or an evaluation; -1 = all

  static Kind<DataSettings> kind();
  static DataSettings read(const Setting& section) { return kind().read(section); }
};

}  // namespace tutti

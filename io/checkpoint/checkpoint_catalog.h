#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/section.h"
#include "recipe/time/time.h"

namespace tutti {

// [checkpoint] best: which checkpoints are kept for their metric.
struct BestKeys {
  Setting metric;  // see logged_name (training/metrics/logged_metrics.h)
  std::string mode = "auto";
  int keep = 1;

  static Kind<BestKeys> kind();
};

// [checkpoint]
struct CheckpointKeys {
  Time interval = {1, TimeUnit::kEpoch};
  Given<std::optional<std::string>> save_folder;  // nullopt: checkpoints/ in the run folder
  Given<std::string> save_filename = "ep{epoch}-ba{batch}";
  Given<std::string> save_latest_filename = "latest";
  Setting save_overwrite;  // false: checkpoints of another run are an error; true or none: moved aside
  Given<bool> save_weights_only = false;
  std::vector<std::string> save_ignore_keys;
  int keep = -1;       // number of published checkpoints to keep, at least the newest; negative = all
  Setting best_table;  // none, or of BestKeys
  Given<bool> save_metrics = true;

  Setting resume;  // a path, "auto", or none
  Given<bool> autoresume = false;
  Given<bool> load_weights_only = false;
  Given<bool> load_strict_model_weights = true;
  Given<std::vector<std::string>> load_ignore_keys, load_exclude_algorithms;

  static Kind<CheckpointKeys> kind();
};

}  // namespace tutti

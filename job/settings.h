#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/catalog.h"
#include "data/dataset.h"
#include "io/journal/recorded_run.h"
#include "job/checkpoint_options.h"
#include "sharding/catalog.h"
#include "training/precision.h"
#include "training/settings.h"

namespace tutti {

// [device]
struct DeviceSettings {
  int threads = 1;
  bool tf32 = false;
  std::vector<int64_t> memory_budget_bytes;  // of each rank, or of all ranks alike; empty = none

  static DeviceSettings read(const Setting& section);
  int64_t memory_budget(int rank) const;  // bytes; 0 = none
};

// [journal]
struct JournalSettings {
  JournalLevel level = JournalLevel::kFull;
  int keep = -1;  // attempts whose journals are kept; -1 = all

  static JournalSettings read(const Setting& section);
};

// The settings of a resolved recipe, without sections with a kind, which factories read.
struct RunSettings {
  std::string run_name;
  TrainSettings train;
  DataSettings train_data;
  Precision precision;
  CheckpointSettings checkpoint;
  CollectiveSettings collectives;
  ShardingSettings sharding;
  DeviceSettings device;
  JournalSettings journal;

  // Throws UserError for invalid values and combinations.
  static RunSettings read(const Setting& recipe);
};

}  // namespace tutti

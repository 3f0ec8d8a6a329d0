#pragma once

#include <string>

#include "collectives/catalog.h"
#include "data/dataset.h"
#include "job/checkpoint_options.h"
#include "job/sections.h"
#include "sharding/catalog.h"
#include "training/precision.h"
#include "training/settings.h"

namespace tutti {

// The settings of a resolved recipe, without sections with a kind, which factories read.
struct RunSettings {
  std::string run_name;
  TrainSettings train;
  DataSettings train_data;
  Precision precision;
  CheckpointSettings checkpoint;
  CollectiveSettings collectives;
  ShardingSettings sharding;
  ReproducibilitySettings reproducibility;
  DeviceSettings device;
  JournalSettings journal;

  // Throws UserError for invalid values and combinations.
  static RunSettings read(const Setting& recipe);
};

}  // namespace tutti

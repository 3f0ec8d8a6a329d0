#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/journal/recorded_run.h"
#include "recipe/section.h"

// Sections of a recipe that are of the whole run. Free of libtorch.
namespace tutti {

// The keys above the first section.
struct RunKeys {
  Given<std::string> run_name = "run";

  static Kind<RunKeys> kind();
};

// The keys of [device], whatever its kind.
struct DeviceSettings {
  int threads = 1;
  bool tf32 = false;
  Given<Numbers> memory_budget_mb;  // of each rank, or of all ranks alike; empty = none

  static Kind<DeviceSettings> kind();
  int64_t memory_budget(int rank) const;  // bytes; 0 = none
};
Catalog device_catalog();

// [journal]
struct JournalSettings {
  Given<JournalLevel> level = JournalLevel::kFull;
  int keep = -1;  // attempts whose journals are kept; -1 = all

  static Kind<JournalSettings> kind();
};

// [plugins]
struct PluginSettings {
  Setting library;  // a path, or none

  static Kind<PluginSettings> kind();
};

}  // namespace tutti

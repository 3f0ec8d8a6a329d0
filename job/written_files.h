#pragma once

#include <string>

#include "recipe/setting.h"

namespace tutti {

// Where a run keeps what is its own.
struct RunPlaces {
  std::string run_dir;
  std::string checkpoints;  // folder
  int world = 1;
};

// Throws UserError where [[loggers]] or [[callbacks]] of a resolved recipe name a file that the run itself
// writes or reads, that another of them names too, or that is no file but a folder, a pipe or a device.
void check_written_files(const Setting& recipe, const RunPlaces& places);

}  // namespace tutti

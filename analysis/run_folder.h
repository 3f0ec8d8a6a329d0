#pragma once

#include <string>

#include "recipe/setting.h"
#include "runtime/disk.h"

namespace tutti {

// Throws UserError if there is no such folder, or it is not a run's.
void require_run_folder(const Disk& disk, const std::string& run_dir);

// "" if the recipe has no such text.
std::string text_at(const Setting& recipe, const char* section, const char* key);

// The folder of the run's checkpoints, by its resolved recipe.
std::string checkpoints_folder(const std::string& run_dir, const Setting& recipe);

// True if a run holds the folder's lock. A lock that may not be tried, or is missing, counts as free.
bool is_under_way(Disk& disk, const std::string& run_dir);

}  // namespace tutti

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "recipe/setting.h"

namespace tutti {

struct DrawnFilesOptions {
  uint64_t first = 1, last = 100;                               // seed
  int ranks = 2;                                                // where the space does not say
  std::string folder;                                           // made if absent
  std::function<void(const Setting& recipe, int ranks)> check;  // as SimulateOptions::check
};

// Writes the recipe that each seed draws from `space` (recipe/recipe_space.h) as FOLDER/SEED.toml, resolved;
// its first line says on how many ranks. Prints a summary. Draws that `check` refuses are drawn again. Throws
// UserError.
void write_drawn_recipes(const Setting& space, const DrawnFilesOptions& options);

}  // namespace tutti

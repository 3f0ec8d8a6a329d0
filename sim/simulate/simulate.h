#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/setting.h"
#include "sim/simulate/seed_workers.h"

namespace tutti {

// What `tutti simulate` was told.
struct SimulateOptions {
  std::string recipe_path;
  std::vector<std::string> overrides;
  int ranks = 2;
  uint64_t first = 1, last = 1;  // seeds
  std::string faults;            // a plan's path; "" = none
  int jobs = 0;                  // processes; 0 = as many as cores
  bool twice = true;             // each seed, which must go alike
  std::string run_dir;           // keep the journals of a lone seed there, where there are none; "" = no
  std::optional<SeedShare>
      share;  // simulate these in this process, and print them for the one that started it
};

// Simulates the recipe and prints what came of it. Returns the exit code: 0 when everything that must hold
// did and every fault of the plan happened that can on so many ranks, else 1. Throws UserError.
int simulate(const Setting& recipe, const SimulateOptions& options);

}  // namespace tutti

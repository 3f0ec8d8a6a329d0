#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/setting.h"
#include "sim/simulate/seed_workers.h"

namespace tutti {

// The options of `tutti simulate`.
struct SimulateOptions {
  std::string recipe_path;
  std::vector<std::string> overrides;
  int ranks = 2;
  uint64_t first = 1, last = 1;    // seed
  std::string faults;              // path of the plan; "" = none
  int jobs = 0;                    // processes; 0 = as many as cores
  bool twice = true;               // run each seed twice and compare
  std::string run_dir;             // for the journals of a single seed; must have none; "" = none are kept
  std::optional<SeedShare> share;  // simulate these seeds in this process, as a worker
};

// Simulates the recipe and prints the results. Returns the exit code: 0 if no invariant was violated and
// every fault of the plan that is possible on so many ranks happened, else 1. Throws UserError.
int simulate(const Setting& recipe, const SimulateOptions& options);

}  // namespace tutti

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "recipe/toml_reader.h"

namespace tutti {

// The options of `tutti simulate`.
struct SimulateOptions {
  RecipeFile recipe = {};
  int ranks = 2;
  uint64_t first = 1, last = 100;  // seed
  std::string faults;              // path of the plan; "" = none
  int jobs = 0;                    // processes; 0 = as many as cores
  bool once = false;               // do not run each seed twice and compare
  std::string run_dir;             // for the journals of a single seed; must have none; "" = none are kept
  std::string shrink;  // folder for the first failed seed's recipe and plan, made smaller; "" = none
  std::string write;   // folder for the recipes that seeds draw, without a simulation; "" = simulate
  // For `write`: throws UserError for a recipe, resolved, that `tutti check` refuses on so many ranks.
  std::function<void(const Setting& recipe, int ranks)> check = {};
  bool all_probes = false;  // list the probes; the exit code is 1 if one is never hit
  int share_of = 0;         // simulate every N-th seed in this process, as a worker; 0: start workers
};

// Simulates a written recipe, or recipes drawn from a space of them (recipe/recipe_space.h), and prints the
// results. Returns the exit code: 0 if no invariant was violated, every fault of the plan that is possible
// on so many ranks happened and, with all_probes, every probe was hit; else 1. Throws UserError.
int simulate(const Setting& recipe, const SimulateOptions& options);

}  // namespace tutti

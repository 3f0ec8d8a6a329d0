#pragma once

#include <string>

#include "recipe/recipe_space.h"
#include "sim/simulate/shrink.h"
#include "sim/simulate/simulation.h"

namespace tutti {

struct DrawnSeedOptions {
  int ranks = 2;        // where the space does not say
  std::string faults;   // path of the plan; "" = none
  bool once = false;    // do not run the seed twice and compare
  std::string run_dir;  // gets the journals, and the recipe as recipe.toml; "" = none
  SimSeams seams, reference;  // of Simulation
};

// Draws recipes until one is accepted, and simulates the seed with it. What `tutti check` and the start of a
// run refuse is drawn again, and counted by the reason.
SeedResult simulate_drawn(const RecipeSpace& space, const DrawnSeedOptions& options, uint64_t seed);

// The recipe that simulate_drawn accepted, with paths that hold in any folder; no plan.
FailingCase failing_case(const RecipeSpace& space, const SeedResult& failed, int ranks);

}  // namespace tutti

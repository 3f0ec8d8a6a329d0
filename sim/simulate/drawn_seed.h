#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "recipe/recipe_space.h"
#include "recipe/setting.h"
#include "runtime/error.h"
#include "sim/simulate/shrink.h"
#include "sim/simulate/simulation.h"

namespace tutti {

struct DrawnSeedOptions {
  int ranks = 2;              // where the space does not say
  Setting plan;               // as written; none: no faults
  bool once = false;          // do not run the seed twice and compare
  std::string run_dir;        // gets the journals, and the recipe as recipe.toml; "" = none
  SimSeams seams, reference;  // of Simulation
};

// Draws recipes for the seed until `use` throws no UserError; `refused` gets the errors. False if `use`
// refuses too many.
bool use_first_accepted(const RecipeSpace& space, uint64_t seed, int ranks,
                        const std::function<void(const DrawnRecipe&)>& use,
                        const std::function<void(const UserError&, const DrawnRecipe&)>& refused);

// Draws recipes until one is accepted, and simulates the seed with it. What `tutti check` and the start of a
// run refuse is drawn again, and counted by the reason.
SeedResult simulate_drawn(const RecipeSpace& space, const DrawnSeedOptions& options, uint64_t seed);

// The recipe that simulate_drawn accepted, with paths that hold in any folder; no plan.
FailingCase failing_case(const RecipeSpace& space, const SeedResult& failed, int ranks);

}  // namespace tutti

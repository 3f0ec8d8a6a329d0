#include "sim/simulate/drawn_seed.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <utility>

#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"

namespace tutti {
namespace {

constexpr int kMostDraws = 200;

// Without "file:line: ", and what follows the first line, which a rank's error has behind blanks.
std::string reason_of(const UserError& error, const std::string& file) {
  std::string text = error.headline();
  text = text.substr(0, std::min(text.find('\n'), text.find("   ")));
  const std::size_t place = text.find(file + ":");
  if (place == text.npos) return text;
  const std::size_t end = text.find(": ", place);
  return end == text.npos ? text : text.substr(end + 2);
}

SeedResult simulate_one(const DrawnRecipe& drawn, const DrawnSeedOptions& options, uint64_t seed) {
  const Setting recipe = resolve_recipe(drawn.recipe);
  if (!options.run_dir.empty()) {
    std::filesystem::create_directories(options.run_dir);
    std::ofstream(options.run_dir + "/recipe.toml") << write_recipe(recipe);
  }
  FaultPlan plan;
  if (!options.plan.is_none()) plan = make_fault_plan(options.plan, drawn.ranks);
  Simulation simulation(recipe, drawn.ranks, std::move(plan), options.seams, options.reference);
  simulation.keep_journals(options.run_dir);
  return options.once ? simulation.run(seed) : simulation.run_twice(seed);
}

}  // namespace

bool use_first_accepted(const RecipeSpace& space, uint64_t seed, int ranks,
                        const std::function<void(const DrawnRecipe&)>& use,
                        const std::function<void(const UserError&, const DrawnRecipe&)>& refused) {
  for (int number = 0; number < kMostDraws; ++number) {
    const DrawnRecipe drawn = space.draw(seed, number, ranks);
    try {
      use(drawn);
      return true;
    } catch (const UserError& error) {
      refused(error, drawn);
    }
  }
  return false;
}

SeedResult simulate_drawn(const RecipeSpace& space, const DrawnSeedOptions& options, uint64_t seed) {
  SeedResult result;
  std::map<std::string, int64_t> refusals;
  const auto simulate = [&](const DrawnRecipe& drawn) {
    try {
      result = simulate_one(drawn, options, seed);
    } catch (const UserError&) {
      throw;
    } catch (const std::exception& error) {
      result.findings = {std::string("the run without faults: ") + error.what()};
    }
  };
  const auto count = [&](const UserError& error, const DrawnRecipe& drawn) {
    ++refusals[reason_of(error, drawn.recipe.position.file)];
    clear_probes();  // of the refused recipe
  };
  if (!use_first_accepted(space, seed, options.ranks, simulate, count))
    result.findings = {"no drawn recipe is accepted"};
  result.seed = seed;
  result.refusals = std::move(refusals);
  return result;
}

FailingCase failing_case(const RecipeSpace& space, const SeedResult& failed, int ranks) {
  int refused = 0;
  for (const auto& [why, count] : failed.refusals) refused += static_cast<int>(count);
  const DrawnRecipe drawn = space.draw(failed.seed, refused, ranks);
  return {with_absolute_paths(drawn.recipe, resolve_recipe(drawn.recipe)),
          drawn.ranks,
          {},
          failed.seed,
          failed.findings.front()};
}

}  // namespace tutti

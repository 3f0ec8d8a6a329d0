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

SeedResult without_run(uint64_t seed, const std::string& finding) {
  SeedResult result;
  result.seed = seed;
  result.findings = {finding};
  return result;
}

SeedResult simulate_one(const DrawnRecipe& drawn, const DrawnSeedOptions& options, uint64_t seed) {
  const Setting recipe = resolve_recipe(drawn.recipe);
  if (!options.run_dir.empty()) {
    std::filesystem::create_directories(options.run_dir);
    std::ofstream(options.run_dir + "/recipe.toml") << write_recipe(recipe);
  }
  FaultPlan plan;
  if (!options.faults.empty()) plan = read_fault_plan(options.faults, drawn.ranks);
  Simulation simulation(recipe, drawn.ranks, std::move(plan), options.seams, options.reference);
  simulation.keep_journals(options.run_dir);
  return options.once ? simulation.run(seed) : simulation.run_twice(seed);
}

}  // namespace

SeedResult simulate_drawn(const RecipeSpace& space, const DrawnSeedOptions& options, uint64_t seed) {
  std::map<std::string, int64_t> refusals;
  SeedResult result;
  for (int number = 0; number < kMostDraws; ++number) {
    const DrawnRecipe drawn = space.draw(seed, number, options.ranks);
    try {
      result = simulate_one(drawn, options, seed);
      result.refusals = refusals;
      return result;
    } catch (const UserError& error) {
      ++refusals[reason_of(error, drawn.recipe.position.file)];
      clear_probes();  // of the refused recipe
    } catch (const std::exception& error) {
      return without_run(seed, std::string("the run without faults: ") + error.what());
    }
  }
  result = without_run(seed, "no drawn recipe is accepted");
  result.refusals = refusals;
  return result;
}

FailingCase failing_case(const RecipeSpace& space, const SeedResult& failed, int ranks) {
  int refused = 0;
  for (const auto& [why, count] : failed.refusals) refused += static_cast<int>(count);
  const DrawnRecipe drawn = space.draw(failed.seed, refused, ranks);
  return {with_absolute_paths(drawn.recipe, resolve_recipe(drawn.recipe)), drawn.ranks, {}, failed.seed,
          failed.findings.front()};
}

}  // namespace tutti

#include "sim/simulate/drawn_files.h"

#include <filesystem>
#include <fstream>

#include "job/recipe_catalogs.h"
#include "recipe/recipe_space.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "sim/simulate/simulation.h"

namespace tutti {
namespace {

constexpr int kMostRefusals = 200;

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw UserError("--write: cannot write " + path);
}

// Throws UserError for a recipe that is refused, by trying a run.
void write_drawn(const DrawnRecipe& drawn, const std::string& title, const std::string& path) {
  const Setting recipe = resolve_recipe(drawn.recipe);
  simulated_job(recipe, drawn.ranks);
  write_file(path, "# " + title + ", on " + std::to_string(drawn.ranks) +
                       (drawn.ranks == 1 ? " rank\n" : " ranks\n") + write_recipe(recipe));
}

// Returns the number of refused draws.
int write_seed(const RecipeSpace& space, const std::string& title, uint64_t seed,
               const DrawnFilesOptions& options) {
  const std::string path = options.folder + "/" + std::to_string(seed) + ".toml";
  for (int number = 0;; ++number) try {
      write_drawn(space.draw(seed, number, options.ranks), title, path);
      return number;
    } catch (const UserError&) {
      if (number + 1 == kMostRefusals) throw;
    }
}

}  // namespace

void write_drawn_recipes(const Setting& written, const DrawnFilesOptions& options) {
  const RecipeSpace space(written);
  std::error_code failed;
  std::filesystem::create_directories(options.folder, failed);
  int64_t refused = 0;
  for (uint64_t seed = options.first; seed <= options.last; ++seed)
    refused +=
        write_seed(space, "seed " + std::to_string(seed) + " of " + written.position.file, seed, options);
  print_text("  " + std::to_string(options.last - options.first + 1) + " drawn recipes in " +
             terminal_text(options.folder) + "; " + std::to_string(refused) + " draws were refused\n");
}

}  // namespace tutti

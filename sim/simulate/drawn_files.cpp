#include "sim/simulate/drawn_files.h"

#include <filesystem>
#include <fstream>

#include "job/recipe_catalogs.h"
#include "recipe/recipe_space.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "sim/simulate/drawn_seed.h"

namespace tutti {
namespace {

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw UserError("--write: cannot write " + path);
}

// The file of a drawn recipe that `tutti check` takes.
std::string text_of(const DrawnRecipe& drawn, const std::string& title, const DrawnFilesOptions& options) {
  const Setting recipe = resolve_recipe(drawn.recipe);
  options.check(recipe, drawn.ranks);
  return "# " + title + ", on " + std::to_string(drawn.ranks) + (drawn.ranks == 1 ? " rank\n" : " ranks\n") +
         write_recipe(recipe);
}

}  // namespace

void write_drawn_recipes(const Setting& written, const DrawnFilesOptions& options) {
  const RecipeSpace space(written);
  std::error_code failed;
  std::filesystem::create_directories(options.folder, failed);
  int64_t refused = 0;
  for (uint64_t seed = options.first; seed <= options.last; ++seed) {
    const std::string number = std::to_string(seed),
                      title = "seed " + number + " of " + written.position.file;
    std::string text, why;
    const bool accepted = use_first_accepted(
        space, seed, options.ranks, [&](const DrawnRecipe& drawn) { text = text_of(drawn, title, options); },
        [&](const UserError& error, const DrawnRecipe&) { ++refused, why = error.what(); });
    if (!accepted) throw UserError(why);
    write_file(options.folder + "/" + number + ".toml", text);
  }
  print_text("  " + std::to_string(options.last - options.first + 1) + " drawn recipes in " +
             terminal_text(options.folder) + "; " + std::to_string(refused) + " draws were refused\n");
}

}  // namespace tutti

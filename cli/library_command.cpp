#include "cli/library_command.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "job/recipe_catalogs.h"
#include "recipe/recipe_space.h"
#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/process/memory_limits.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

fs::path library_path() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path beside = folder / "libtutti.so";
  const fs::path installed = folder / ".." / "lib" / "libtutti.so";
  return fs::exists(beside) || !fs::exists(installed) ? beside : installed;
}

// RTLD_GLOBAL: components of Open MPI and plugins use symbols of the library.
void* open_library() {
  // Else UCX, below Open MPI 5, handles SIGHUP, under nohup too.
  setenv("UCX_DEBUG_SIGNO", "0", /*replace=*/0);
  void* library = dlopen(library_path().c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (!library) {
    const std::string why = dlerror();
    const MemoryLimits limits;
    throw OperatingError(
        "cannot open libtutti.so: " + why +
        (limits.any() && fs::exists(library_path()) ? "; the system has a " + limits.text() : ""));
  }
  return library;
}

}  // namespace

CLI::Option* add_recipe_options(CLI::App& command, RecipeFile& recipe) {
  auto* path = command.add_option("RECIPE", recipe.path, "the recipe, a TOML file")->required();
  add_set_option(command, recipe);
  return path;
}

void add_set_option(CLI::App& command, RecipeFile& recipe) {
  command.add_option("--set", recipe.overrides, "set a key of the recipe; VALUE is TOML, else a bare text")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_attempt_option(CLI::App& command, int64_t& attempt, const std::string& suffix) {
  const auto add = [&](const std::string& name) {
    return command
        .add_option(name + suffix, attempt, "number of the recorded attempt, from 1 (default: the newest)")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000));
  };
  add("--attempt");
  add("--start")->group("");
}

int run_in_library(const CommandOptions& options) {
  auto* run = reinterpret_cast<decltype(&tutti_run)>(dlsym(open_library(), "tutti_run"));
  if (!run) throw OperatingError(std::string("libtutti.so is of another build: ") + dlerror());
  return run(options);
}

void require_valid(const RecipeFile& recipe) {
  if (launched_rank()) return;
  const Setting written = read_recipe(recipe.path, recipe.overrides);
  if (!RecipeSpace::is_space(written)) resolve_stages(written);
}

}  // namespace tutti

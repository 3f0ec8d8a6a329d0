#include "cli/run_arguments.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "analysis/named_run.h"
#include "analysis/run_folder.h"
#include "io/run_paths.h"
#include "job/recipe_catalogs.h"
#include "recipe/placeholders.h"
#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuns = "runs";
constexpr std::size_t kMostNames = 30;  // in an error

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// "" if no folder beside has a name that is near.
std::string nearest_run(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent.empty() ? "." : parent, error))
    if (entry.is_directory(error)) names.push_back(entry.path().filename().string());
  const std::string near = nearest_name(fs::path(path).filename().string(), names);
  return near.empty() ? "" : "; did you mean " + (parent / near).string() + '?';
}

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_checkpoint(const std::string& folder) { return is_there(folder + "/manifest.json"); }
bool has_recipe(const std::string& folder) { return is_there(folder + '/' + kRecipeFile); }

std::string newest() {
  const std::string run = newest_run(kRuns);
  if (launched_rank().value_or(0) == 0)
    std::fprintf(stderr, "run: %s, the newest in %s/\n", on_one_line(run).c_str(), kRuns);
  return run;
}

std::string without_slashes(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.find_last_not_of('/') + 1, 1));
}

// Where the checkpoints of a run are.
struct RunPlace {
  std::string run_dir, checkpoints;
  std::string latest;  // the link to the newest

  static RunPlace in(const std::string& run_dir, const Setting& recipe) {
    std::string latest = text_at(recipe, "checkpoint", "save_latest_filename");
    const Setting* name = recipe.find("run_name");
    replace_all(latest, "{run_name}", name && name->is_text() ? name->text() : "");
    return {run_dir, checkpoints_folder(run_dir, recipe), latest};
  }
  static RunPlace in(const std::string& run_dir) {
    return in(run_dir, read_recipe(path_in_run(run_dir, kRecipeFile)));
  }
  // Of the run that trains the recipe without --run-dir, or of its newest stage.
  static RunPlace from_recipe(const RecipeFile& file) {
    const Setting written = read_recipe(file.path, file.overrides);
    const Setting recipe = resolve_stages(written).front().recipe;
    const std::string run_dir = std::string(kRuns) + '/' + recipe.at("run_name").text();
    if (!has_stages(written)) return in(run_dir, recipe);
    if (stage_runs(run_dir).empty()) throw UserError({run_dir}, "there is no such run");
    return in(newest_stage(run_dir));
  }

  // Where the newest good checkpoint is searched for. A folder of its own may be shared by several runs.
  std::string newest_path() const {
    if (checkpoints == run_dir + "/checkpoints") return run_dir;
    const std::string link = checkpoints + '/' + latest;
    return !latest.empty() && is_there(link) ? link : checkpoints;
  }
};

[[noreturn]] void refuse_checkpoint(const RunPlace& place, const std::string& name) {
  const std::vector<std::string> names = checkpoint_names(place.checkpoints);
  std::string known;
  for (std::size_t i = names.size() - std::min(names.size(), kMostNames); i < names.size(); ++i)
    known += (known.empty() ? "" : ", ") + names[i];
  if (names.size() > kMostNames) known = "... " + known;
  Setting(name, "--checkpoint", {"command line"})
      .fail(names.empty()    ? place.run_dir + " has no checkpoint"
            : name == "best" ? place.run_dir + " keeps no best one ([checkpoint] best); there are " + known
                             : "expected the name of a checkpoint of " + place.run_dir +
                                   ", or the beginning of one name; there are " + known);
}

// The path of a checkpoint of this run.
std::string chosen(const RunPlace& place, const std::string& name) {
  if (name.empty() || name == "latest" || name == "auto") {
    if (checkpoint_names(place.checkpoints).empty())
      throw UserError({place.run_dir}, "there is no checkpoint in " + place.checkpoints);
    return place.newest_path();
  }
  if (name.find('/') != name.npos) return name;
  const std::string named = named_checkpoint(place.checkpoints, name);
  if (!named.empty() || is_there(name)) return named.empty() ? name : named;
  refuse_checkpoint(place, name);
}

// The run that has the checkpoint in its folder, or in the folder of its checkpoints.
std::string run_of_checkpoint(const std::string& folder) {
  for (const char* above : {"..", "../.."}) {
    const std::string run_dir = (fs::path(folder) / above).lexically_normal().string();
    if (has_recipe(run_dir)) return without_slashes(run_dir);
  }
  throw UserError({folder}, "is a checkpoint, and its run's " + std::string(kRecipeFile) +
                                " is not above it; name the recipe, and this folder by --checkpoint");
}

// The run of a path that is the recipe in a run's folder; else "".
std::string run_of_own_recipe(const std::string& path) {
  std::error_code error;
  if (fs::path(path).filename() != kRecipeFile || !fs::is_regular_file(path, error)) return "";
  const std::string folder = fs::path(path).parent_path().string();
  const std::string run_dir = folder.empty() ? "." : folder;
  return is_run_folder(newest_stage(run_dir)) ? run_dir : "";
}

// In place of a recipe with stages: the folder of the newest stage of its run.
void settle_stages(RecipeFile& recipe) {
  std::error_code error;
  if (!fs::is_regular_file(recipe.path, error) || !has_stages(read_recipe(recipe.path, recipe.overrides)))
    return;
  recipe.path = RunPlace::from_recipe(recipe).run_dir;
}

}  // namespace

void add_run_argument(CLI::App& command, std::string& run) {
  command.add_option("RUN", run, "the run's folder, or its recipe (default: the newest run in runs/)");
}

void add_checkpoint_option(CLI::App& command, std::string& checkpoint) {
  command
      .add_option("--checkpoint", checkpoint,
                  "best, latest, a checkpoint's name or its beginning (ep3), or a path (default: the newest)")
      ->type_name("best|latest|PATH");
}

std::string run_folder(const std::string& run) { return newest_stage(folder_of_all_stages(run)); }

std::string folder_of_all_stages(const std::string& run) {
  if (run.empty()) return newest();
  std::error_code error;
  if (!fs::is_regular_file(run, error)) return without_slashes(run);
  if (!run.ends_with(".toml"))
    throw UserError({run},
                    "is a file; expected the folder of a run or a checkpoint, or a recipe (a run reads "
                    "the weights of other programs by [model] weights)");
  if (const std::string own = run_of_own_recipe(run); !own.empty()) return own;
  const std::string run_dir = RunPlace::from_recipe({run, {}}).run_dir;
  return has_stages(read_recipe(run)) ? fs::path(run_dir).parent_path().string() : run_dir;
}

std::string checkpoint_folder(const std::string& path, const std::string& checkpoint) {
  const bool is_run = path.empty() || !is_folder(path) || has_recipe(path);
  if (checkpoint.empty() && (!is_run || (!path.empty() && !is_there(path)))) return path;
  const std::string run_dir = run_folder(path);
  require_run_folder(run_dir);
  return chosen(RunPlace::in(run_dir), checkpoint);
}

void complete(RecipeFile& recipe, std::string& checkpoint) {
  if (recipe.path.empty()) recipe.path = newest();
  if (const std::string own = run_of_own_recipe(recipe.path); !own.empty()) recipe.path = own;
  settle_stages(recipe);
  if (!is_there(recipe.path) && !recipe.path.ends_with(".toml"))
    throw UserError({recipe.path}, "there is no such run or recipe" + nearest_run(recipe.path));
  if (!is_folder(recipe.path)) {
    const bool is_path = checkpoint.find('/') != checkpoint.npos || is_there(checkpoint);
    if (checkpoint.empty() || checkpoint == "auto" || is_path) return;
    checkpoint = chosen(RunPlace::from_recipe(recipe), checkpoint);
    return;
  }
  std::string run_dir = newest_stage(without_slashes(recipe.path));
  if (is_checkpoint(run_dir) && !has_recipe(run_dir)) {
    if (!checkpoint.empty())
      throw UserError({run_dir}, "is a checkpoint, and --checkpoint names another; keep one of the two");
    checkpoint = run_dir;
    run_dir = run_of_checkpoint(run_dir);
  } else {
    require_run_folder(run_dir);
    checkpoint = chosen(RunPlace::in(run_dir), checkpoint);
  }
  recipe.path = path_in_run(run_dir, kRecipeFile);
}

void complete(RecipeFile& recipe) {
  if (!is_folder(recipe.path)) return;
  const std::string run_dir = newest_stage(without_slashes(recipe.path));
  require_run_folder(run_dir);
  recipe.path = path_in_run(run_dir, kRecipeFile);
}

}  // namespace tutti

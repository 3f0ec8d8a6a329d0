#include "commands/entry.h"

#include <string>

#include "analysis/run_folder.h"
#include "commands/stages.h"
#include "commands/train.h"
#include "job/recipe_catalogs.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

Setting resolved(const RecipeFile& file) { return resolve_recipe(read_recipe(file.path, file.overrides)); }

int print(const std::string& text) {
  print_text(text);
  return 0;
}

// An error of the recipe is reported where the command reads it.
bool are_stages(const RecipeFile& file) try {
  return has_stages(read_recipe(file.path, file.overrides));
} catch (const UserError&) {
  return false;
}

// Runs of stages, and trials, have the names of their folder's files for their own.
void require_folder_of_one_run(const Setting& recipe, const std::string& run_dir) {
  const Setting* name = recipe.find("run_name");
  const std::string folder = run_dir.empty() && name ? "runs/" + name->text() : run_dir;
  if (!stage_runs(folder).empty())
    throw UserError({folder}, "has a training in stages; --run-dir OTHER trains elsewhere");
  require_no_sweep(folder);
}

int run(const TrainOptions& train) {
  if (are_stages(train.recipe)) return train_stages(train);
  const auto recipe = [&train] {
    Setting made = resolved(train.recipe);
    require_folder_of_one_run(made, train.run_dir);
    return made;
  };
  return Launcher().train(recipe, {.run_dir = train.run_dir,
                                   .resume = train.resume,
                                   .json = train.json,
                                   .local_ranks = train.local_ranks});
}

int run(const EvalOptions& options) { return print(eval_text(resolved(options.recipe), options.checkpoint)); }

int run(const PredictOptions& options) { return print(predict_text(resolved(options.recipe), options)); }

int run(const CheckOptions& options) {
  return print(are_stages(options.recipe) ? check_stages_text(options)
                                          : check_text(resolved(options.recipe), options));
}

int run(const CostOptions& options) {
  *options.cost = cost_of(resolved(options.recipe));
  return 0;
}

int run(const InspectOptions& options) {
  return print(options.digest ? inspect_digest(options.path) + "\n" : inspect_text(options.path));
}

int run(const ExportOptions& options) { return print(export_text(options)); }
int run(const ImportOptions& options) { return print(import_text(resolved(options.recipe), options)); }

int run(const ContinueOptions& options) { return print(generate_text(options)); }
int run(const SampleImagesOptions& options) { return print(sample_images(options)); }
int run(const TokenizeOptions& options) { return print(tokenize_texts(options)); }

// A recipe of so many steps, without its schedule.
Setting short_recipe(RecipeFile file, int steps) {
  for (const std::string& own :
       {std::string("scheduler={kind = 'constant'}"), std::string("train.scale_schedule_ratio=1.0"),
        "train.max_duration=" + std::to_string(steps) + "ba"})
    file.overrides.push_back(own);
  return resolved(file);
}

int run(const LrFindOptions& options) {
  return find_lr(short_recipe(options.recipe, options.steps), options);
}

int run(const BatchFindOptions& options) { return find_batch(resolved(options.recipe), options); }

int run(const ReplayOptions& options) {
  const ReplayResult result = replay(options);
  print(result.text + '\n');
  return result.same ? 0 : 1;
}

int run(SimulateOptions options) {
  options.check = [](const Setting& recipe, int ranks) { check_text(recipe, {.ranks = ranks}); };
  return simulate(read_recipe(options.recipe.path, options.recipe.overrides), options);
}

int run(const Refusal& refusal) {
  return Launcher().train([&refusal]() -> Setting { throw UserError(refusal.why); }, {});
}

}  // namespace
}  // namespace tutti

int tutti_run(const tutti::CommandOptions& command) {
  return std::visit([](const auto& options) { return tutti::run(options); }, command);
}

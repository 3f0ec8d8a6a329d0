#include "commands/entry.h"

#include <random>
#include <string>

#include "commands/local_train.h"
#include "commands/stages.h"
#include "commands/train.h"
#include "job/recipe_catalogs.h"
#include "runtime/error.h"
#include "runtime/launcher.h"
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

int run(const TrainOptions& train) {
  if (are_stages(train.recipe)) return train_stages(train);
  const auto recipe = [&train] {
    if (train.local_ranks > 0 && launched_rank())
      throw UserError("--local-ranks " + std::to_string(train.local_ranks) +
                      ": under mpirun the ranks are mpirun's; leave one of the two out");
    return resolved(train.recipe);
  };
  if (train.local_ranks == 0 || launched_rank())
    return Launcher().train(recipe, {.run_dir = train.run_dir, .resume = train.resume, .json = train.json});
  LocalRunOptions options;
  options.live = true;
  options.json = train.json;
  options.ranks = train.local_ranks;
  options.fresh_seed = std::random_device()();
  options.run_dir = train.run_dir;
  options.resume = train.resume;
  return train_in_one_process(recipe(), options).exit_code;
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

int run(const BatchFindOptions& options) {
  return find_batch(short_recipe(options.recipe, options.steps), options);
}

int run(const ReplayOptions& options) {
  const ReplayResult result = replay(options);
  print(result.text + '\n');
  return result.same ? 0 : 1;
}

int run(const SimulateOptions& options) { return simulate(resolved(options.recipe), options); }

int run(const Refusal& refusal) {
  return Launcher().train([&refusal]() -> Setting { throw UserError(refusal.why); }, {});
}

}  // namespace
}  // namespace tutti

int tutti_run(const tutti::CommandOptions& command) {
  return std::visit([](const auto& options) { return tutti::run(options); }, command);
}

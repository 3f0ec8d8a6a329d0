#include "commands/trainer.h"

#include "collectives/mpi/world.h"
#include "commands/train.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr int kRefused = 2;  // exit code

Setting written_recipe(const std::string& recipe, const std::vector<std::string>& overrides) {
  const bool text = recipe.find('\n') != std::string::npos;
  return text ? parse_recipe(recipe, "recipe", overrides) : read_recipe(recipe, overrides);
}

// Launcher::train throws errors of ranks in this process.
int train_locally(Launcher& launcher, const RecipeSource& recipe, const LaunchOptions& launch) try {
  return launcher.train(recipe, launch);
} catch (const RunError& error) {
  print_error(error.what());
  return exit_code(error.kind());
}

}  // namespace

Trainer::Trainer(Options options) : options_(std::move(options)), launcher_(std::make_unique<Launcher>()) {}
Trainer::~Trainer() = default;

int Trainer::fit(const std::vector<Task>& then) {
  if (launcher_->stopped()) return 0;
  const auto recipe = [this] { return resolve_recipe(written_recipe(options_.recipe, options_.overrides)); };
  LaunchOptions launch{options_.run_dir, trained_ ? "auto" : options_.resume};
  if (options_.model)
    launch.components.make_model = [this](const Setting&, const SampleSpec& samples) {
      return options_.model(samples);
    };
  launch.components.data = options_.data;
  launch.components.listeners = options_.listeners;
  launch.components.tasks = tasks_;
  launch.components.tasks_done = std::ssize(tasks_);
  launch.components.tasks.insert(launch.components.tasks.end(), then.begin(), then.end());
  launch.ends_process = false;
  launch.json = options_.json;
  launch.local_ranks = options_.local_ranks;
  const int exit_code =
      launch.local_ranks > 0 ? train_locally(*launcher_, recipe, launch) : launcher_->train(recipe, launch);
  trained_ = trained_ || exit_code != kRefused;  // what was not refused may have left checkpoints
  if (exit_code != 0) return exit_code;
  tasks_ = std::move(launch.components.tasks);
  return 0;
}

void Trainer::save_checkpoint(const std::string& folder) const {
  if (folder.empty()) throw UserError("save_checkpoint needs the name of a folder");
  launcher_->save_checkpoint(folder);
}

int run_program(const std::function<int()>& program) try {
  return program();
} catch (const UserError& error) {
  if (MpiWorld::ended()) {
    print_error(rank_message(launched_rank().value_or(0), error.what()));
    return exit_code(error.kind());
  }
  return Launcher().train([&error]() -> Setting { throw UserError(error.what()); }, {});
} catch (const std::exception& error) {
  print_error(launched_rank() ? rank_message(*launched_rank(), error.what()) : error.what());
  return 1;
}

}  // namespace tutti

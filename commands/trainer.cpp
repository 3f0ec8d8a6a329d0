#include "commands/trainer.h"

#include "commands/train.h"
#include "io/checkpoint/checkpoint.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/process/this_process.h"

namespace tutti {
namespace {

Setting written_recipe(const std::string& recipe, const std::vector<std::string>& overrides) {
  const bool text = recipe.find('\n') != std::string::npos;
  return text ? parse_recipe(recipe, "recipe", overrides) : read_recipe(recipe, overrides);
}

}  // namespace

Trainer::Trainer(Options options) : options_(std::move(options)), launcher_(std::make_unique<Launcher>()) {}
Trainer::~Trainer() = default;

int Trainer::fit(const std::vector<Task>& then) {
  const auto recipe = [this] { return resolve_recipe(written_recipe(options_.recipe, options_.overrides)); };
  LaunchOptions launch{options_.run_dir, trained_ ? "auto" : options_.resume};
  if (options_.model)
    launch.components.make_model = [this](const Setting&, const SampleSpec& samples) {
      return options_.model(samples);
    };
  tasks_.insert(tasks_.end(), then.begin(), then.end());
  launch.components.data = options_.data;
  launch.components.listeners = options_.listeners;
  launch.components.tasks = tasks_;
  launch.ends_process = false;
  const int exit_code = launcher_->train(recipe, launch);
  trained_ = exit_code == 0;
  return exit_code;
}

void Trainer::save_checkpoint(const std::string& folder) const {
  if (launched_rank().value_or(0) != 0) return;
  if (!trained_) throw UserError(folder + ": there is nothing to save before fit");
  PosixDisk disk;
  const auto skip = [](const std::string& bad) { print_warning(bad); };
  copy_checkpoint(disk, find_checkpoint(disk, launcher_->checkpoints(), skip).folder, folder);
}

int run_program(const std::function<int()>& program) try {
  return program();
} catch (const UserError& error) {
  return Launcher().train([&error]() -> Setting { throw UserError(error.what()); }, {});
} catch (const std::exception& error) {
  print_error(rank_message(launched_rank().value_or(0), error.what()));
  return 1;
}

}  // namespace tutti

#include "commands/trainer.h"

#include "commands/train.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
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

int Trainer::fit(const std::vector<Task>& then) {
  const auto recipe = [this] { return resolve_recipe(written_recipe(options_.recipe, options_.overrides)); };
  LaunchOptions launch{options_.run_dir, options_.resume};
  if (options_.model)
    launch.components.make_model = [this](const Setting&, const SampleSpec& samples) {
      return options_.model(samples);
    };
  launch.components.data = options_.data;
  launch.components.listeners = options_.listeners;
  launch.components.tasks = then;
  launch.ends_process = false;
  return train(recipe, launch);
}

int run_program(const std::function<int()>& program) try {
  return program();
} catch (const UserError& error) {
  return train([&error]() -> Setting { throw UserError(error.what()); }, {});
} catch (const std::exception& error) {
  print_error(rank_message(launched_rank().value_or(0), error.what()));
  return 1;
}

}  // namespace tutti

#include "cli/commands.h"
#include "cli/recipe_request.h"

namespace tutti {

void add_eval(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("eval", "Evaluate a checkpoint on [data.eval]");
  auto arguments = std::make_shared<LibraryArguments>();
  add_recipe_options(*command, *arguments);
  command
      ->add_option("--checkpoint", arguments->checkpoint,
                   "the checkpoint or run folder (default: the run's newest)")
      ->type_name("PATH");
  command->callback(
      [&action, arguments] { action = [=] { return run_recipe_request("eval", *arguments); }; });
}

}  // namespace tutti

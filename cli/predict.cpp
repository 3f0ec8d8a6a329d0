#include "cli/commands.h"
#include "cli/recipe_request.h"

namespace tutti {

void add_predict(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("predict", "Write a checkpoint's outputs for evaluation data to a file");
  auto arguments = std::make_shared<LibraryArguments>();
  add_recipe_options(*command, *arguments);
  command->add_option("--out", arguments->out, "the HDF5 file to write")->type_name("FILE")->required();
  command
      ->add_option("--checkpoint", arguments->checkpoint,
                   "the checkpoint or run folder (default: the run's newest)")
      ->type_name("PATH");
  command
      ->add_option("--evaluator", arguments->evaluator,
                   "the label of the data (default: eval, [data.eval]'s)")
      ->type_name("LABEL");
  command->callback(
      [&action, arguments] { action = [=] { return run_recipe_request("predict", *arguments); }; });
}

}  // namespace tutti

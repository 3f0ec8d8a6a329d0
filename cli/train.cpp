#include "cli/commands.h"
#include "cli/recipe_request.h"

namespace tutti {

void add_train(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("train", "Train a model");
  auto arguments = std::make_shared<LibraryArguments>();
  add_recipe_options(*command, *arguments);
  command
      ->add_option("--run-dir", arguments->run_dir,
                   "the run's folder (default: runs/ and the recipe's run_name)")
      ->type_name("DIR");
  command
      ->add_option("--resume", arguments->resume,
                   "go on from a checkpoint; auto: from the run's newest good one, if there is any, else as "
                   "the recipe "
                   "says")
      ->type_name("auto|PATH");
  command->add_option("--local-ranks", arguments->local_ranks, "ranks in this one process, without mpirun")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->callback(
      [&action, arguments] { action = [=] { return run_recipe_request("train", *arguments); }; });
}

}  // namespace tutti

#include "cli/commands.h"
#include "cli/recipe_request.h"

namespace tutti {

void add_check(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("check", "Show the whole recipe as it would run, and what is wrong with it");
  auto arguments = std::make_shared<LibraryArguments>();
  add_recipe_options(*command, *arguments);
  command->add_flag("--data", arguments->scan_data, "read every sample too");
  command->add_option("--ranks", arguments->ranks, "as for so many ranks")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  command->callback(
      [&action, arguments] { action = [=] { return run_recipe_request("check", *arguments); }; });
}

}  // namespace tutti

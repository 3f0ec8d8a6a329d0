#include "cli/commands.h"
#include "cli/recipe_request.h"

namespace tutti {

void add_inspect(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("inspect", "Show what is in a checkpoint or a run folder");
  auto arguments = std::make_shared<LibraryArguments>();
  command->add_option("PATH", arguments->path, "the checkpoint's or the run's folder")->required();
  command->add_flag("--digest", arguments->digest,
                    "print only one hash of all weights, the same for any number of ranks");
  command->callback([&action, arguments] { action = [=] { return run_request("inspect", *arguments); }; });
}

}  // namespace tutti

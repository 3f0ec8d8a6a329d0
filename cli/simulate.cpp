#include "cli/commands.h"
#include "cli/recipe_request.h"

namespace tutti {
namespace {

// "17" or "1..1000"
std::string seed_range(std::string& text) {
  const auto number = [](const std::string& digits) {
    return !digits.empty() && digits.size() < 18 && digits.find_first_not_of("0123456789") == digits.npos;
  };
  const std::size_t dots = text.find("..");
  const std::string first = text.substr(0, dots);
  const std::string last = dots == text.npos ? first : text.substr(dots + 2);
  if (!number(first) || !number(last) || std::stoll(last) < std::stoll(first))
    return "expected a seed or a range of them, as in 1..1000";
  text = first + ".." + last;
  return "";
}

}  // namespace

void add_simulate(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("simulate", "Run a recipe in made-up time, with faults, and check what must hold");
  auto arguments = std::make_shared<LibraryArguments>();
  add_recipe_options(*command, *arguments);
  arguments->ranks = 2;
  arguments->seeds = "1..100";
  command->add_option("--ranks", arguments->ranks, "ranks, all in one process (default: 2)")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
  command->add_option("--seeds", arguments->seeds, "a run each (default: 1..100)")
      ->transform(CLI::Validator(seed_range, "FIRST..LAST"));
  command->add_option("--faults", arguments->faults, "what goes wrong, a TOML file")->type_name("PLAN");
  command->add_option("--jobs", arguments->jobs, "processes at once (default: as many as cores)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--once,!--check-determinism", arguments->once,
                    "do not run each seed a second time to see that it goes alike");
  command
      ->add_option("--run-dir", arguments->run_dir,
                   "keep the journals of a lone seed there, for tutti timeline; a folder that has none yet")
      ->type_name("D");
  command
      ->add_option("--share-of", arguments->share_of, "simulate every so many-th seed, for another process")
      ->group("");
  command->callback(
      [&action, arguments] { action = [=] { return run_recipe_request("simulate", *arguments); }; });
}

}  // namespace tutti

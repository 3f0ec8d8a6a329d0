// Subcommands that take a recipe.
#include "cli/commands.h"
#include "cli/recipe_request.h"

namespace tutti {
namespace {

// Adds a subcommand that takes a recipe and runs in libtutti.so.
CLI::App* add_recipe_command(CLI::App& app, Action& action, const std::string& name, const char* doc,
                             const LibraryArgumentsPtr& arguments) {
  auto* command = app.add_subcommand(name, doc);
  add_recipe_options(*command, *arguments);
  command->callback(
      [&action, name, arguments] { action = [=] { return run_recipe_request(name, *arguments); }; });
  return command;
}

void add_checkpoint_option(CLI::App& command, LibraryArguments& arguments) {
  command
      .add_option("--checkpoint", arguments.checkpoint,
                  "the checkpoint or run folder (default: the run's newest)")
      ->type_name("PATH");
}

// Turns "17" into "17..17"; accepts "1..1000". Returns an error message or "".
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

void add_train(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<LibraryArguments>();
  auto* command = add_recipe_command(app, action, "train", "Train a model", arguments);
  command
      ->add_option("--run-dir", arguments->run_dir,
                   "the run's folder (default: runs/ and the recipe's run_name)")
      ->type_name("DIR");
  command
      ->add_option(
          "--resume", arguments->resume,
          "resume from a checkpoint; auto: the run's newest good one if any, else as the recipe says")
      ->type_name("auto|PATH");
  command->add_option("--local-ranks", arguments->local_ranks, "ranks in this one process, without mpirun")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", arguments->json, "print nothing but the result, as JSON, at the end");
}

void add_eval(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<LibraryArguments>();
  add_checkpoint_option(
      *add_recipe_command(app, action, "eval", "Evaluate a checkpoint on [data.eval]", arguments),
      *arguments);
}

void add_predict(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<LibraryArguments>();
  auto* command = add_recipe_command(app, action, "predict",
                                     "Write a checkpoint's outputs for evaluation data to a file", arguments);
  command->add_option("--out", arguments->out, "the HDF5 file to write")->type_name("FILE")->required();
  add_checkpoint_option(*command, *arguments);
  command
      ->add_option("--evaluator", arguments->evaluator,
                   "the label of the data (default: eval, the label of [data.eval])")
      ->type_name("LABEL");
}

void add_check(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<LibraryArguments>();
  auto* command =
      add_recipe_command(app, action, "check", "Check a recipe, and try two steps of it", arguments);
  command->add_flag("--data", arguments->scan_data, "also read every sample");
  command->add_flag("--all", arguments->all, "also show the recipe with all defaults");
  command
      ->add_option("--steps", arguments->steps,
                   "steps to try, for their time and memory (default: 2; 0: none)")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000));
  command->add_option("--ranks", arguments->ranks, "check for this number of ranks")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
}

void add_simulate(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<LibraryArguments>();
  auto* command = add_recipe_command(
      app, action, "simulate", "Run a recipe in simulated time with faults, and check invariants", arguments);
  arguments->ranks = 2;
  arguments->seeds = "1..100";
  command->add_option("--ranks", arguments->ranks, "ranks, all in one process (default: 2)")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
  command->add_option("--seeds", arguments->seeds, "seeds to run (default: 1..100)")
      ->transform(CLI::Validator(seed_range, "FIRST..LAST"));
  command->add_option("--faults", arguments->faults, "a fault plan, a TOML file")->type_name("PLAN");
  command->add_option("--jobs", arguments->jobs, "parallel processes (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--once,!--check-determinism", arguments->once,
                    "do not run each seed a second time to check determinism");
  command
      ->add_option("--run-dir", arguments->run_dir,
                   "keep the journals of a single seed in this new folder, for tutti timeline")
      ->type_name("D");
  command
      ->add_option("--share-of", arguments->share_of,
                   "simulate only every N-th seed; used by parent processes")
      ->group("");
}

}  // namespace tutti

// Subcommands that take a recipe.
#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/library_command.h"
#include "runtime/launcher.h"

namespace tutti {
namespace {

// Adds a subcommand that takes a recipe and runs in libtutti.so.
template <class Options>
CLI::App* add_recipe_command(CLI::App& app, Action& action, const char* name, const char* doc,
                             const std::shared_ptr<Options>& options) {
  auto* command = app.add_subcommand(name, doc);
  add_recipe_options(*command, options->recipe);
  command->callback([&action, options] {
    action = [options] {
      require_valid(options->recipe);
      return run_in_library(*options);
    };
  });
  return command;
}

void add_checkpoint_option(CLI::App& command, std::string& checkpoint) {
  command.add_option("--checkpoint", checkpoint, "the checkpoint or run folder (default: the run's newest)")
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
  auto options = std::make_shared<TrainOptions>();
  auto* command = add_recipe_command(app, action, "train", "Train a model", options);
  command
      ->add_option("--run-dir", options->run_dir,
                   "the run's folder (default: runs/ and the recipe's run_name)")
      ->type_name("DIR");
  command
      ->add_option(
          "--resume", options->resume,
          "resume from a checkpoint; auto: the run's newest good one if any, else as the recipe says")
      ->type_name("auto|PATH");
  command->add_option("--local-ranks", options->local_ranks, "ranks in this one process, without mpirun")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", options->json, "print nothing but the result, as JSON, at the end");
}

void add_eval(CLI::App& app, Action& action) {
  auto options = std::make_shared<EvalOptions>();
  auto* command = add_recipe_command(app, action, "eval", "Evaluate a checkpoint on [data.eval]", options);
  add_checkpoint_option(*command, options->checkpoint);
}

void add_predict(CLI::App& app, Action& action) {
  auto options = std::make_shared<PredictOptions>();
  auto* command = add_recipe_command(app, action, "predict",
                                     "Write a checkpoint's outputs for evaluation data to a file", options);
  command->add_option("--out", options->out, "the HDF5 file to write")->type_name("FILE")->required();
  add_checkpoint_option(*command, options->checkpoint);
  command
      ->add_option("--evaluator", options->evaluator,
                   "the label of the data (default: eval, the label of [data.eval])")
      ->type_name("LABEL");
}

void add_check(CLI::App& app, Action& action) {
  auto options = std::make_shared<CheckOptions>();
  options->ranks = std::max(1, launched_world());
  options->steps = 2;
  auto* command =
      add_recipe_command(app, action, "check", "Check a recipe, and try two steps of it", options);
  command->add_flag("--data", options->scan_data, "also read every sample");
  command->add_flag("--all", options->all, "also show the recipe with all defaults");
  command
      ->add_option("--steps", options->steps, "steps to try, for their time and memory (default: 2; 0: none)")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000));
  command->add_option("--ranks", options->ranks, "check for this number of ranks")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
}

void add_lr_find(CLI::App& app, Action& action) {
  auto options = std::make_shared<LrFindOptions>();
  auto* command = add_recipe_command(
      app, action, "lr-find", "Find a learning rate: train with rates that grow from step to step", options);
  command->add_option("--steps", options->steps, "steps at most (default: 100)")
      ->type_name("N")
      ->check(CLI::Range(10, 100'000));
  command->add_option("--first", options->first, "the rate of the first step (default: 1e-7)")
      ->type_name("R")
      ->check(CLI::Range(1e-30, 1e6));
  command->add_option("--last", options->last, "the rate of the last step (default: 10)")
      ->type_name("R")
      ->check(CLI::Range(1e-30, 1e6));
  command->add_option("--local-ranks", options->local_ranks, "ranks in this one process, without mpirun")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--run-dir", options->run_dir,
                   "the folder of the curves (default: runs/, the recipe's run_name and -lr-find)")
      ->type_name("DIR");
}

void add_simulate(CLI::App& app, Action& action) {
  auto options = std::make_shared<SimulateOptions>();
  auto* command = add_recipe_command(
      app, action, "simulate", "Run a recipe in simulated time with faults, and check invariants", options);
  command->add_option("--ranks", options->ranks, "ranks, all in one process (default: 2)")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
  const auto set_seeds = [options](const std::string& range) {
    options->first = std::stoull(range);
    options->last = std::stoull(range.substr(range.find("..") + 2));
  };
  command->add_option_function<std::string>("--seeds", set_seeds, "seeds to run (default: 1..100)")
      ->transform(CLI::Validator(seed_range, "FIRST..LAST"));
  command->add_option("--faults", options->faults, "a fault plan, a TOML file")->type_name("PLAN");
  command->add_option("--jobs", options->jobs, "parallel processes (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--once,!--check-determinism", options->once,
                    "do not run each seed a second time to check determinism");
  command
      ->add_option("--run-dir", options->run_dir,
                   "keep the journals of a single seed in this new folder, for tutti timeline")
      ->type_name("D");
  command
      ->add_option("--share-of", options->share_of, "simulate only every N-th seed; used by parent processes")
      ->group("");
}

}  // namespace tutti

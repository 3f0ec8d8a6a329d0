// Subcommands that take a recipe.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "analysis/run_folder.h"
#include "cli/commands.h"
#include "cli/library_command.h"
#include "cli/run_arguments.h"
#include "io/run_paths.h"
#include "runtime/error.h"
#include "runtime/launcher.h"

namespace tutti {
namespace {

// Adds a subcommand that takes a recipe, or a run in its place, and runs in libtutti.so.
template <class Options>
CLI::App* add_recipe_command(CLI::App& app, Action& action, const char* name, const char* doc,
                             const std::shared_ptr<Options>& options) {
  auto* command = app.add_subcommand(name, doc);
  add_recipe_options(*command, options->recipe);
  command->callback([&action, options] {
    action = [options] {
      complete(options->recipe);
      require_valid(options->recipe);
      return run_in_library(*options);
    };
  });
  return command;
}

// The same for commands that use the weights of a run, of the newest run unless another is named.
template <class Options>
CLI::App* add_weights_command(CLI::App& app, Action& action, const char* name, const char* doc,
                              const std::shared_ptr<Options>& options) {
  auto* command = app.add_subcommand(name, doc);
  command->add_option("RUN|RECIPE", options->recipe.path,
                      "the run's folder, or its recipe (default: the newest run in runs/)");
  add_set_option(*command, options->recipe);
  add_checkpoint_option(*command, options->checkpoint);
  command->callback([&action, options] {
    action = [options] {
      complete(options->recipe, options->checkpoint);
      require_valid(options->recipe);
      return run_in_library(*options);
    };
  });
  return command;
}

// Trains with the options that `prepare` completes; all ranks hear of its error.
template <class Prepare>
int train_prepared(TrainOptions& options, const Prepare& prepare) {
  try {
    prepare();
    require_valid(options.recipe);
  } catch (const UserError& error) {
    if (!launched_rank()) throw;
    return run_in_library(Refusal{error.what()});
  }
  return run_in_library(options);
}

void add_train_options(CLI::App& command, TrainOptions& options) {
  command.add_option("--local-ranks", options.local_ranks, "ranks in this one process, without mpirun")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--json", options.json, "print nothing but the result, as JSON, at the end");
}

// `--resume recipe.toml` has no checkpoint, and the recipe is the command's.
void settle_recipe(TrainOptions& options) {
  std::error_code error;
  const std::string& resume = options.resume;
  if (options.recipe.path.empty() && std::filesystem::is_regular_file(resume, error)) {
    options.recipe.path = resume;
    options.resume = "auto";
  }
  if (options.recipe.path.empty()) throw CLI::RequiredError("RECIPE");
}

void refuse_run(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error) && is_run_folder(newest_stage(path)))
    throw UserError({path}, "is a run; `tutti resume " + path + "` continues it, `tutti train " + path +
                                "/recipe.toml --run-dir OTHER` trains its recipe anew");
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
  auto* command = app.add_subcommand("train", "Train a model");
  add_recipe_options(*command, options->recipe)->required(false);
  command
      ->add_option("--run-dir", options->run_dir,
                   "the run's folder (default: runs/ and the recipe's run_name)")
      ->type_name("DIR");
  command
      ->add_option(
          "--resume", options->resume,
          "resume from a checkpoint; auto: the run's newest good one if any, else as the recipe says")
      ->type_name("auto|PATH")
      ->expected(0, 1)
      ->default_str("auto");
  add_train_options(*command, *options);
  command->callback([&action, options] {
    settle_recipe(*options);
    action = [options] { return train_prepared(*options, [&] { refuse_run(options->recipe.path); }); };
  });
}

void add_import(CLI::App& app, Action& action) {
  auto options = std::make_shared<ImportOptions>();
  auto* command = app.add_subcommand("import", "Write another program's checkpoint as one of tutti's");
  command
      ->add_option("CKPT", options->path,
                   "of Composer, Lightning, transformers or PyTorch: a file, or a sharded one's folder")
      ->required();
  command->add_option("--recipe", options->recipe.path, "of the run that is to continue it")
      ->type_name("FILE")
      ->required();
  add_set_option(*command, options->recipe);
  command
      ->add_option("--out", options->out,
                   "the checkpoint's folder to write (default: among the checkpoints of the recipe's run)")
      ->type_name("DIR");
  command->callback([&action, options] {
    action = [options] {
      require_valid(options->recipe);
      return run_in_library(*options);
    };
  });
}

void add_resume(CLI::App& app, Action& action) {
  auto options = std::make_shared<TrainOptions>();
  auto run = std::make_shared<std::string>();
  auto* command = app.add_subcommand("resume", "Continue a run from its newest good checkpoint");
  add_run_argument(*command, *run);
  add_set_option(*command, options->recipe);
  add_train_options(*command, *options);
  command->callback([&action, options, run] {
    action = [options, run] {
      return train_prepared(*options, [&] {
        options->run_dir = folder_of_all_stages(*run);
        options->resume = "auto";
        require_run_folder(newest_stage(options->run_dir));
        options->recipe.path = path_in_run(options->run_dir, kRecipeFile);
      });
    };
  });
}

void add_eval(CLI::App& app, Action& action) {
  auto options = std::make_shared<EvalOptions>();
  add_weights_command(app, action, "eval", "Evaluate a checkpoint on [data.eval]", options);
}

void add_predict(CLI::App& app, Action& action) {
  auto options = std::make_shared<PredictOptions>();
  auto* command = add_weights_command(
      app, action, "predict", "Write a checkpoint's outputs for evaluation data, or new data, to a file",
      options);
  command
      ->add_option("--out", options->out,
                   "the file to write: .csv, .jsonl, .parquet, .h5 or .hdf5; -: CSV on standard output")
      ->type_name("FILE")
      ->required();
  command
      ->add_option(
          "--data", options->data,
          "data in place of the evaluator's path, also without labels: a file, a folder of pictures, a "
          "picture; -: texts on standard input, a line each")
      ->type_name("PATH");
  command->add_option("--top-k", options->top_k, "also the N likeliest classes of each row (default: one)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
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

void add_batch_find(CLI::App& app, Action& action) {
  auto options = std::make_shared<BatchFindOptions>();
  options->ranks = std::max(1, launched_world());
  auto* command =
      add_recipe_command(app, action, "batch-find",
                         "Find the most samples that fit the memory: try 1, 2, 4, ... of them", options);
  command->add_option("--steps", options->steps, "steps to try with each number (default: 3)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  command->add_option("--most", options->most, "samples of a rank at most (default: those of the data)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--ranks", options->ranks, "ranks that share this machine (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
}

void add_simulate(CLI::App& app, Action& action) {
  auto options = std::make_shared<SimulateOptions>();
  auto* command = add_recipe_command(
      app, action, "simulate", "Run a recipe in simulated time with faults, and check invariants", options);
  command->add_option("--ranks", options->ranks, "ranks, all in one process (default: 2)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
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
      ->add_option("--shrink", options->shrink,
                   "make the first failed seed's recipe and fault plan smaller, in this new folder")
      ->type_name("D");
  command->add_option("--write", options->write, "write the recipes that seeds draw here, and simulate none")
      ->type_name("D");
  command->add_flag("--all-probes", options->all_probes,
                    "list the rare states of tutti that no seed reached, and fail if there are any");
  command
      ->add_option("--share-of", options->share_of, "simulate only every N-th seed; used by parent processes")
      ->group("");
}

}  // namespace tutti

#include "commands/program/train_program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/nearest_name.h"

namespace tutti {
namespace {

// The options of a Trainer, which stands as long as the parser does.
void add_arguments(CLI::App& app, Trainer::Options& options) {
  app.add_option("RECIPE", options.recipe, "the recipe, a TOML file");
  app.add_option("--set", options.overrides, "set a key of the recipe; may be given several times")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--run-dir", options.run_dir, "the run's folder (default: runs/ and the recipe's run_name)")
      ->type_name("DIR");
  app.add_option("--resume", options.resume,
                 "resume from a checkpoint; auto, the default: the run's newest good one if any")
      ->type_name("auto|PATH")
      ->expected(0, 1)
      ->default_str("auto");
  app.add_option("--local-ranks", options.local_ranks, "ranks in this one process, without mpirun")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--json", options.json, "print nothing but the result, as JSON, at the end")
      ->disable_flag_override();
}

void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& value : option->results())
      if (value.empty())
        throw UserError(option->get_name() + ": expected a value, not an empty text (see --help)");
}

void refuse_extras(const CLI::App& app, const std::string& recipe) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return;
  const auto option = std::ranges::find_if(extras, [](const auto& word) { return word.starts_with('-'); });
  if (option == extras.end()) throw UserError(extras[0] + " was not expected: the recipe is " + recipe);
  std::vector<std::string> known;
  for (const CLI::Option* other : app.get_options())
    for (const std::string& name : other->get_lnames()) known.push_back("--" + name);
  const std::string near = nearest_name(option->substr(0, option->find('=')), known);
  throw UserError(*option + " was not expected" + (near.empty() ? "" : "; did you mean " + near + "?") +
                  " (see --help)");
}

// Throws UserError for wrong words; --help prints the text and ends the process.
void parse(CLI::App& app, const Trainer::Options& options, int argc, char** argv) {
  try {
    app.allow_extras();
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    if (launched_rank().value_or(0) == 0) std::printf("%s", app.help().c_str());
    std::exit(0);
  } catch (const CLI::ParseError& error) {
    throw UserError(std::string(error.what()) + " (see --help)");
  }
  refuse_extras(app, options.recipe);
  refuse_empty_values(app);
}

}  // namespace

Trainer::Options with_arguments(Trainer::Options options, int argc, char** argv) {
  const std::string program = argc > 0 ? argv[0] : "";
  CLI::App app("Trains on one rank; mpirun -np N " + program + " RECIPE on N of them.", program);
  add_arguments(app, options);
  parse(app, options, argc, argv);
  std::error_code error;
  if (app.count("RECIPE") == 0 && std::filesystem::is_regular_file(options.resume, error)) {
    options.recipe = options.resume;  // a recipe behind --resume is no checkpoint
    options.resume = "auto";
  }
  if (options.recipe.empty()) throw UserError("expected a recipe, a TOML file (see --help)");
  return options;
}

int train_program(int argc, char** argv, Trainer::Options options) {
  return run_program([&] { return Trainer(with_arguments(std::move(options), argc, argv)).fit(); });
}

}  // namespace tutti

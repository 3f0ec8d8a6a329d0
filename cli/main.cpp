#include <fcntl.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>

#include "cli/command_line.h"
#include "cli/library_command.h"
#include "cli/run_ranks.h"
#include "job/names/foreign_names.h"
#include "job/recipe_catalogs.h"
#include "recipe/hints.h"
#include "runtime/error.h"
#include "runtime/lack_of_memory.h"
#include "runtime/launcher.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"
#include "runtime/process/this_process.h"
#include "runtime/rank_end.h"

namespace tutti {
namespace {

constexpr int kFailure = 1;

int rank() { return launched_rank().value_or(0); }

// An unset variable of the shell must not count as an option that was not given.
void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options())
    for (const std::string& value : option->results())
      if (value.empty())
        throw UserError(option->get_name() + ": expected a value, not an empty text (see --help)");
}

// The key of a recipe that an option is called like, or what its name is elsewhere; "" = none.
std::string key_hint(std::string option) {
  std::ranges::replace(option.erase(0, 2), '-', '_');
  const NameHints hints(recipe_catalogs(), foreign_names());
  const std::string key = hints.for_key({}, nullptr, "", option, {}).meant;
  if (!key.empty()) return "; did you mean --set " + key + "=...?";
  const auto foreign =
      std::ranges::find_if(foreign_names(), [&](const auto& name) { return name.is_called(option); });
  return foreign == foreign_names().end() ? "" : "; " + foreign->translation();
}

// A guess at the meaning of an unknown word of a command.
std::string option_hint(const CLI::App& command, const std::string& word) {
  if (!word.starts_with("--")) return "";
  const std::string option = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const CLI::Option* other : command.get_options()) {
    if (other->get_group().empty()) continue;
    for (const std::string& name : other->get_lnames()) known.push_back("--" + name);
  }
  const std::string near = nearest_name(option, known);
  if (!near.empty() && similar_name(near, option)) return "; did you mean " + near + "?";
  const bool takes_keys = std::ranges::count(known, "--set") > 0;
  if (const std::string hint = takes_keys ? key_hint(option) : ""; !hint.empty()) return hint;
  return near.empty() ? "" : "; did you mean " + near + "?";
}

// Throws if a command has words that it does not know.
void refuse_extras(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    const std::vector<std::string> extras = command->remaining();
    if (extras.empty()) continue;
    const auto option =
        std::ranges::find_if(extras, [](const auto& extra) { return extra.starts_with('-'); });
    const std::string& word = option == extras.end() ? extras.front() : *option;
    throw UserError(command->get_name() + ": " + word + " was not expected" + option_hint(*command, word) +
                    " (see --help)");
  }
}

// The exit code if there is nothing to run (--help, --version). Throws UserError.
std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  if (argc > 1 && *argv[1] != '-') command_named(app, argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      refuse_extras(app);
      throw UserError(std::string(error.what()) + " (see --help)");
    }
    return rank() == 0 ? app.exit(error) : 0;
  }
  for (const CLI::App* command : app.get_subcommands()) refuse_empty_values(*command);
  if (argc == 1) throw UserError("expected a command\n\n" + app.help());
  return std::nullopt;
}

int run(int argc, char** argv) {
  CLI::App app("Distributed deep-learning training in C++.", "tutti");
  Action action;
  add_commands(app, action);
  if (argc > 1 && std::string(argv[1]) == "__complete") {  // by scripts of `tutti completion`
    std::fputs(completions(app, {argv + 2, argv + argc}).c_str(), stdout);
    return 0;
  }
  if (argc > 2 && std::string(argv[1]) == "run" && std::string(argv[2]) != "--help")
    return run_ranks(app, {argv + 2, argv + argc});
  try {
    if (const auto code = parse(app, argc, argv)) return *code;
  } catch (const UserError& error) {
    if (!launched_rank()) throw;
    return run_in_library(Refusal{error.what()});  // a rank that cannot start informs the other ranks
  }
  const auto runs_on_all = {"train", "resume", "lr-find"};
  if (rank() > 0 &&
      std::ranges::none_of(runs_on_all, [&](const char* name) { return app.got_subcommand(name); }))
    return 0;  // other commands run in one process
  return action();
}

// Opens /dev/null for closed standard streams, so that no file opened later receives output meant for a
// stream.
void fill_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", O_RDWR);
}

int fail(const std::string& why) {
  report_unshared(why);
  return kFailure;
}

int run_to_an_exit_code(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const UserError& error) {
    print_error(error.what());
    return exit_code(error.kind());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(error.path1().string() + ": " + error.code().message());
  } catch (const std::exception& error) {
    return fail(error_message(error));
  }
}

}  // namespace
}  // namespace tutti

// Ends without the destructors of static objects: libtorch's take 0.1 s.
int main(int argc, char** argv) {
  tutti::fill_standard_streams();
  const int code = tutti::run_to_an_exit_code(argc, argv);
  std::fflush(nullptr);
  std::quick_exit(code);
}

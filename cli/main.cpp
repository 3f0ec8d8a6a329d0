#include <fcntl.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <exception>
#include <optional>

#include "cli/command_line.h"
#include "cli/recipe_request.h"
#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr int kUserError = 2;
constexpr int kFailure = 1;

int rank() { return launched_rank().value_or(0); }

// An unset variable of the shell must not count as an option that was not given.
void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options())
    for (const std::string& value : option->results())
      if (value.empty())
        throw UserError(option->get_name() + ": expected a value, not an empty text (see --help)");
}

// "; did you mean --resume?" for --resum.
std::string option_hint(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    std::vector<std::string> known;
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    for (const std::string& extra : command->remaining()) {
      const std::string near =
          extra.starts_with("--") ? nearest_name(extra.substr(0, extra.find('=')), known) : "";
      if (!near.empty()) return "; did you mean " + near + "?";
    }
  }
  return "";
}

// The exit code if there is nothing to run (--help, --version). Throws UserError.
std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  if (argc > 1 && *argv[1] != '-') command_named(app, argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0)
      throw UserError(std::string(error.what()) + option_hint(app) + " (see --help)");
    return rank() == 0 ? app.exit(error) : 0;
  }
  for (const CLI::App* command : app.get_subcommands()) refuse_empty_values(*command);
  if (argc == 1) throw UserError("expected a command\n\n" + app.help());
  return std::nullopt;
}

// Under mpirun, a rank that cannot start informs the other ranks.
int refuse(const std::string& why) {
  LibraryArguments arguments;
  arguments.path = why;
  return run_request("refuse", arguments);
}

int run(int argc, char** argv) {
  CLI::App app("Distributed deep-learning training in C++.", "tutti");
  Action action;
  add_commands(app, action);
  try {
    if (const auto code = parse(app, argc, argv)) return *code;
  } catch (const UserError& error) {
    if (!launched_rank()) throw;
    return refuse(error.what());
  }
  if (rank() > 0 && !app.got_subcommand("train")) return 0;  // other commands run in one process
  return action();
}

// Opens /dev/null for closed standard streams, so that no file opened later receives output meant for a
// stream.
void fill_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", O_RDWR);
}

int run_to_an_exit_code(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const UserError& error) {
    print_error(error.what());
    return kUserError;
  } catch (const std::exception& error) {
    print_error(launched_rank() ? rank_message(rank(), error.what()) : error.what());
    return kFailure;
  }
}

}  // namespace
}  // namespace tutti

// Ends without the destructors of static objects: libtorch's take 0.1 s.
int main(int argc, char** argv) {
  tutti::fill_standard_streams();
  const int code = tutti::run_to_an_exit_code(argc, argv);
  std::fflush(nullptr);
  _exit(code);
}

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "cli/commands.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int kUserError = 2;
constexpr int kFailure = 1;

// This process's rank as its launcher says, or 0.
int launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const char* rank = std::getenv(name)) return std::atoi(rank);
  }
  return 0;
}

void add_commands(CLI::App& app, Action& action) {
  app.set_version_flag("--version", std::string("tutti ") + TUTTI_VERSION);
  app.require_subcommand(0, 1);
  for (const auto add : {add_train, add_eval, add_check, add_inspect, add_stop, add_list, add_explain}) {
    add(app, action);
  }
}

void refuse_unknown_command(const CLI::App& app, const std::string& name) {
  if (name.starts_with('-')) return;
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return;
    names.push_back(command->get_name());
  }
  const std::string near = nearest_name(name, names);
  throw UserError("there is no command " + name + (near.empty() ? "" : "; did you mean " + near + "?"));
}

// --help and --version are told by every kind of launch once; a wrong command line is the user's error.
int parse_failed(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() != 0)
    throw UserError(std::string(error.what()) + " (--help shows what there is)");
  return launched_rank() == 0 ? app.exit(error) : 0;
}

int run(int argc, char** argv) {
  CLI::App app("Distributed deep-learning training in C++.", "tutti");
  Action action;
  add_commands(app, action);
  if (argc > 1) refuse_unknown_command(app, argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return parse_failed(app, error);
  }
  if (action) return action();
  if (launched_rank() == 0) std::fputs(app.help().c_str(), stderr);
  return kUserError;
}

}  // namespace
}  // namespace tutti

// The user's errors are the same on every rank and told by the first alone; others name their rank.
int main(int argc, char** argv) {
  try {
    return tutti::run(argc, argv);
  } catch (const tutti::UserError& error) {
    if (tutti::launched_rank() == 0) std::fprintf(stderr, "error: %s\n", error.what());
    return tutti::kUserError;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: rank %d: %s\n", tutti::launched_rank(), error.what());
    return tutti::kFailure;
  }
}

#pragma once

#include <CLI/App.hpp>
#include <string>

#include "cli/commands.h"

namespace tutti {

// Adds the options of `tutti` and every subcommand, with the examples of their --help.
void add_commands(CLI::App& app, Action& action);

// Throws UserError that suggests the nearest name.
CLI::App& command_named(CLI::App& app, const std::string& name);

}  // namespace tutti

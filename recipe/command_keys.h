#pragma once

#include <string>
#include <string_view>

#include "recipe/setting.h"

namespace tutti {

// Command lines of a recipe, for the shell: `command` and `fetch`, wherever they stand but in the options of
// a plugin. A command may have secrets in it, so whatever a run writes, shows or sends has its name alone.

// True if a key of this dotted path, or a list below it, holds a command: "data.train.fetch". So does one
// that is a slip away, or has more words ("comand", "fetch_command"), since an error on it shows what it
// holds.
bool names_command(const std::string& path);

// True if the key of a command, or of what others call one, stands somewhere in the text.
bool mentions_command(const std::string& text);

// The text of a recipe, line by line, or of an option, without what stands behind the keys of commands.
std::string without_commands(std::string_view toml);

// The name that a command goes by: its first word, and " ..." if that is not all. Variables that are set
// before the word (A=1 program) are left out; "..." alone if the word has characters that names of programs
// lack.
std::string command_name(const std::string& command);

// True for the name of a command that has more.
bool is_command_name(const std::string& text);

// The recipe, or a part of it, with the name of each command in the command's place, "..." for a list.
Setting with_command_names(Setting recipe);

// An argument of --set with the name of the command: "loggers.0.command=curl ...". Of a table that may have a
// command in it only the key is kept. Other words stay.
std::string with_command_name(const std::string& argument);

// Throws UserError for a name in the place of a command, as in the recipe that a run has written.
void require_whole_command(const Setting& command);

}  // namespace tutti

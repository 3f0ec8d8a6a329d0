#pragma once

#include <string>
#include <string_view>

#include "recipe/setting.h"

namespace tutti {

// Command lines of a recipe, for the shell: `command` and `fetch`, in every place but the options of a
// plugin. A command may have secrets in it, so all texts that a run writes, shows or sends have its name
// alone.

// True if the key of this dotted path, or a list below, holds a command: "data.train.fetch". Also for a
// misspelt key or a key with more words ("comand", "fetch_command"), since an error about a key shows the
// value.
bool names_command(const std::string& path);

// True if the key of a command, or another program's name of that key, stands somewhere in the text.
bool mentions_command(const std::string& text);

// The text of a recipe, line by line, or of an option, without the values of the keys of commands.
std::string without_commands(std::string_view toml);

// A command's name: its first word, and " ..." if more words follow. Variables that are set before the word
// (A=1 program) are left out; "..." alone if the word has characters that names of programs lack.
std::string command_name(const std::string& command);

// True for the name of a command that has more.
bool is_command_name(const std::string& text);

// The recipe, or a part of a recipe, with the name of each command in the command's place, "..." for a list.
Setting with_command_names(Setting recipe);

// An argument of --set with the name of the command: "loggers.0.command=curl ...". Of a table that may have a
// command only the key is kept. Other words stay.
std::string with_command_name(const std::string& argument);

// Throws UserError for a name in the place of a command, as in the recipe that a run has written.
void require_whole_command(const Setting& command);

}  // namespace tutti

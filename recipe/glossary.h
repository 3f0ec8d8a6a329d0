#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

// An entry of a table of text: names, their meaning, and places where more is said.
struct GlossaryEntry {
  std::string heading;  // of the entry's part of the table; "" = none
  std::vector<std::string> names;
  std::string text;  // one line; "" = none
  std::vector<std::string> places;
};

// Reads a table that is embedded into the program:
//
//   # A comment.
//   == PyTorch's ==
//
//   num_epochs, epochs > [train] max_duration
//     steps are "500ba"
//   warmup, linear warmup
//     Schedules whose learning rate begins low,
//     for t_warmup.
//     > [scheduler] kind = "linear_with_warmup"
//     > [scheduler] kind = "constant_with_warmup"
//
// Names stand at the left, and continue in the next line after a comma. Two blanks indent the text, which may
// have several lines, and then places, each in a line of its own. A place may stand behind the names instead.
// Asserts that there is no other line; `file` is the table's path, for the message.
std::vector<GlossaryEntry> read_glossary(const std::string& file, std::string_view table);

}  // namespace tutti

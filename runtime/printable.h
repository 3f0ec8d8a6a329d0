#pragma once

#include <string>
#include <string_view>

namespace tutti {

// Makes a message safe for a terminal or a log: escapes control characters other than line breaks (\x1b),
// replaces bytes that are not UTF-8, and leaves out the middle of a long message.
std::string printable(std::string_view message);

// Makes a value safe for a message: as above, but also escapes line breaks and cuts behind 60 bytes.
std::string shown(std::string_view value);

// "error: ..." and "warning: ..." on standard error.
void print_error(const std::string& message);
void print_warning(const std::string& message);

}  // namespace tutti

#pragma once

#include <string>
#include <string_view>

namespace tutti {

// A message as a terminal or a log may have it: control characters but line breaks are escaped (\x1b), bytes
// that are no UTF-8 are replaced, and of a long one the middle is left out.
std::string printable(std::string_view message);

// A value in a message: as above, line breaks escaped too, cut behind 60 bytes.
std::string shown(std::string_view value);

// "error: ..." and "warning: ..." on standard error.
void print_error(const std::string& message);
void print_warning(const std::string& message);

}  // namespace tutti

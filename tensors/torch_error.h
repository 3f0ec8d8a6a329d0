#pragma once

#include <exception>
#include <string>

namespace tutti {

// What went wrong, on one line: of libtorch's errors without the stack trace.
std::string one_line(const std::exception& error);

}  // namespace tutti

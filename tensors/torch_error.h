#pragma once

#include <exception>
#include <string>

namespace tutti {

// The error's message on one line, without libtorch's stack trace.
std::string one_line(const std::exception& error);

}  // namespace tutti

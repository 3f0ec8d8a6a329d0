#pragma once

#include <exception>
#include <string>

namespace tutti {

// The error's own words on one line, without libtorch's stack trace, and without the line of the user's file.
std::string own_words(const std::exception& error);

// The same, and "out of memory" before the words of a library that mean a lack of memory and do not say so.
std::string one_line(const std::exception& error);

// The same without a leading "out of memory", for a message that says so itself; "" if nothing else is left.
std::string reason_of_lack(const std::string& line);

// The whole message of tutti's own errors, else one_line.
std::string whole_text(const std::exception& error);

}  // namespace tutti

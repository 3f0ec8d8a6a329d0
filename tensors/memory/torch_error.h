#pragma once

#include <exception>
#include <string>

#include "runtime/error.h"

namespace tutti {

// The error's own words on one line, without libtorch's stack trace, and without the line of the user's file.
std::string own_words(const std::exception& error);

// True if the error is a lack of memory, by its type or its text: of libtorch and the meter, operator new,
// threads, oneDNN, MKL, and libraries that quote the system. oneDNN also says "could not create a primitive"
// for other reasons: work is then retried in smaller parts in vain, and the error has oneDNN's text. False
// for tutti's own errors, which have been reported already.
bool is_lack_of_memory(const std::exception& error);

// The same, and true for tutti's own errors that report a lack of memory: no mistake of the user's.
bool tells_lack_of_memory(const std::exception& error);

// Its own words, and "out of memory" before the words of a library that mean a lack of memory and do not say
// so.
std::string one_line(const std::exception& error);

// The same without a leading "out of memory", for a message that says so already; "" if no other text is
// left.
std::string reason_of_lack(const std::string& line);

// The error as one of tutti's, for Setting::fail: one_line behind `before`, or an error of tutti's unchanged
// if that is empty. A lack of memory has its own kind, any other is the user's mistake.
RunError run_error(const std::exception& error, const std::string& before = "");

// Throws one_line behind `before` as a UserError; of a lack of memory, as a RunError of its kind.
[[noreturn]] void throw_run_error(const std::exception& error, const std::string& before);

// The whole message of tutti's own errors, else one_line.
std::string whole_text(const std::exception& error);

}  // namespace tutti

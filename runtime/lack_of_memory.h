#pragma once

#include <exception>
#include <string>

#include "runtime/rank_end.h"

namespace tutti {

// True if operator new found no memory, or a thread could not be started. tensors/memory/out_of_memory.h
// knows the words of libraries too.
bool found_no_memory(const std::exception& error);

// True if a run that ends so lacked memory.
bool lacks_memory(EndKind end);

// The error's message: "out of memory" for std::bad_alloc. Errors of the standard library get a cause: words
// such as "map::at" name none.
std::string error_message(const std::exception& error);

}  // namespace tutti

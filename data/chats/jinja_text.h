#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "data/chats/jinja_value.h"

namespace tutti::jinja {

// Methods of Python's texts: strip, split, startswith, replace, ... Marks stay with their bytes. Throws
// UserError for a method that is not known.
Value text_method(const Call& call);

// Where each character of a text ends.
std::vector<std::size_t> characters(std::string_view chars);

}  // namespace tutti::jinja

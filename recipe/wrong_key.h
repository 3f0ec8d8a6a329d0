#pragma once

#include <string>
#include <utility>

#include "runtime/error.h"

namespace tutti {

// A mistake in the value of one key of a section, found by a reader that sees no section: an array, a column
// or a type that the data lack. The reader's caller adds the key's line (data/readers/opened.h).
class WrongKey final : public UserError {
 public:
  // `entry`: the wrong one, if the value is a table. Of a position, the file is the section's `path`.
  WrongKey(std::string key, const Position& position, const std::string& message, std::string entry = "")
      : UserError(position, message), key(std::move(key)), entry(std::move(entry)) {}

  std::string key;
  std::string entry;
};

}  // namespace tutti

#pragma once

#include <optional>
#include <string>

namespace tutti {

// A text of any name as a table: most of its lines have as many cells, which are mostly numbers.
struct SniffedTable {
  char delimiter = ',';
  bool first_is_row = false;  // and has no names
};
// Nullopt: it is none. Throws UserError of a table that needs another form.
std::optional<SniffedTable> sniff_table(const std::string& file);

}  // namespace tutti

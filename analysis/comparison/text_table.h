#pragma once

#include <string>
#include <vector>

namespace tutti {

// A column of a table for people.
struct TextColumn {
  std::string heading;
  std::vector<std::string> cells;  // one a row, each of one line
  int rank = 0;                    // columns of higher rank are left out first where width lacks; 0: never
};

// A line of headings and a line a row, at most `width` characters each (0: any width). Columns that are left
// out are named in a last line; the last column, which may be long, is cut.
std::string table_text(std::vector<TextColumn> columns, int width);

}  // namespace tutti

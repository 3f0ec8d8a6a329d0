#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/tables/table_file.h"

namespace tutti {

// Adds a cell of the first rows to a column's findings: a number (NaN: missing) or, without a number, a text.
void look_at_cell(TableColumn& column, std::optional<double> number, std::string_view written,
                  const std::string& place);

// True for pandas' numbers of the rows: columns without a name, "Unnamed: 0", "__index_level_0__", and
// columns that the file's metadata name.
bool is_row_number(const TableColumn& column);

// True if some of the first cells are not numbers, and other cells are numbers, also in another notation.
bool is_mixed(const TableColumn& column);

// The reason why a column is no input by default: "line 9 is '1,007'; 198 of its first 199 cells are
// numbers", "decimal128(3, 0)". "": a column of numbers.
std::string no_input_reason(const TableColumn& column);

// "price (line 9 is '1,007'; ...), when (timestamp[us])": those columns and their reasons, mixed columns
// first.
std::string reasons_text(const std::vector<const TableColumn*>& columns);

}  // namespace tutti

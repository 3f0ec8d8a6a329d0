#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tutti {

// Columns of numbers that count the rows of each file from 0 or 1 on, as an index does that was written with
// the data.
class RowNumbers {
 public:
  explicit RowNumbers(std::size_t columns);

  void begin_file() { row_ = 0; }
  // The numbers of the next row.
  void add(std::span<const double> cells);
  // The columns among `names`, in order, that count all rows. No columns for a few rows, which are no proof.
  std::vector<std::string> among(const std::vector<std::string>& names) const;

 private:
  std::vector<std::size_t> columns_;  // that count so far
  int64_t row_ = 0, rows_ = 0;
};

// A line about inputs that count the rows. "" = none.
std::string row_numbers_text(const std::vector<std::string>& inputs);

}  // namespace tutti

#include "io/tables/row_numbers.h"

#include <numeric>

#include "runtime/printable.h"

namespace tutti {

RowNumbers::RowNumbers(std::size_t columns) : columns_(columns) {
  std::iota(columns_.begin(), columns_.end(), 0);
}

void RowNumbers::add(std::span<const double> cells) {
  const auto row = static_cast<double>(row_);
  std::erase_if(columns_, [&](std::size_t c) { return cells[c] != row && cells[c] != row + 1; });
  ++row_;
  ++rows_;
}

std::vector<std::string> RowNumbers::among(const std::vector<std::string>& names) const {
  constexpr int64_t kLeastRows = 20;
  std::vector<std::string> counting;
  for (const std::size_t c : columns_)
    if (rows_ >= kLeastRows) counting.push_back(names[c]);
  return counting;
}

std::string row_numbers_text(const std::vector<std::string>& inputs) {
  if (inputs.empty()) return "";
  std::string list;
  for (const std::string& name : inputs) list += (list.empty() ? "'" : ", '") + shown(name) + '\'';
  return "inputs that count the rows (0, 1, 2, ...), as an index does that was written with the data: " +
         list + "; inputs = [...] names the columns to read";
}

}  // namespace tutti

#include "io/tables/column_reasons.h"

#include <algorithm>
#include <cmath>

#include "io/tables/csv_file.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kMostNamed = 20;

bool is_numbered(std::string_view name, std::string_view before, std::string_view behind) {
  if (!name.starts_with(before) || !name.ends_with(behind)) return false;
  if (name.size() <= before.size() + behind.size()) return false;
  name.remove_prefix(before.size());
  name.remove_suffix(behind.size());
  return name.find_first_not_of("0123456789") == name.npos;
}

// pandas' name of its index, and of a second one: "Unnamed: 0", "Unnamed: 0.1".
bool is_unnamed(std::string_view name) {
  const std::size_t dot = std::min(name.find('.'), name.size());
  return is_numbered(name.substr(0, dot), "Unnamed: ", "") &&
         (dot == name.size() || is_numbered(name.substr(dot), ".", ""));
}

// "3,14", "1,234,567": no number here, but one to who wrote it.
bool is_number_with_commas(std::string_view text) {
  constexpr std::size_t kLongestNumber = 64;
  const std::size_t comma = text.find(',');
  if (comma == 0 || comma == text.npos || text.size() > kLongestNumber) return false;
  std::string plain(text);
  if (text.find(',', comma + 1) == text.npos) {
    plain[comma] = '.';
    return table_number(plain).has_value();
  }
  for (std::size_t at = comma; at < text.size() && text[at] == ',';) {
    const std::size_t group = at + 1;
    at = std::min(text.find_first_not_of("0123456789", group), text.size());
    if (at != group + 3) return false;
  }
  std::erase(plain, ',');
  return table_number(plain).has_value();
}

}  // namespace

void look_at_cell(TableColumn& column, std::optional<double> number, std::string_view written,
                  const std::string& place) {
  if (number && std::isnan(*number)) return;
  ++column.cells;
  if (number) ++column.numbers;
  if (!number && is_number_with_commas(written)) ++column.with_commas;
  if (!number && column.reason.empty()) column.reason = place + " is '" + shown(written) + "'";
  column.is_text = column.is_text || !number;
}

bool is_row_number(const TableColumn& column) {
  return column.name.empty() || column.is_index || is_unnamed(column.name) ||
         is_numbered(column.name, "__index_level_", "__");
}

bool is_mixed(const TableColumn& column) {
  return column.is_text && (column.numbers > 0 || column.with_commas > 0);
}

std::string no_input_reason(const TableColumn& column) {
  if (is_row_number(column)) return "pandas' index";
  if (!is_mixed(column)) return column.reason;
  const bool has_numbers = column.numbers > 0;
  return column.reason + "; " + grouped(has_numbers ? column.numbers : column.with_commas) +
         " of its first " + grouped(column.cells) + " cells are numbers" +
         (has_numbers ? "" : " with commas, and points are read");
}

std::string reasons_text(const std::vector<const TableColumn*>& columns) {
  std::vector<const TableColumn*> sorted = columns;
  std::ranges::stable_partition(sorted, [](const TableColumn* column) { return is_mixed(*column); });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kMostNamed); ++i)
    text += (text.empty() ? "" : ", ") +
            (sorted[i]->name.empty() ? "a column without a name" : shown(sorted[i]->name)) + " (" +
            no_input_reason(*sorted[i]) + ')';
  if (sorted.size() > kMostNamed) text += ", and " + std::to_string(sorted.size() - kMostNamed) + " more";
  return text;
}

}  // namespace tutti

#include "io/tables/column_reasons.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// Digits in groups of three behind the first, of at most three.
bool are_grouped(std::string_view digits, char separator) {
  std::size_t end = digits.find(separator);
  if (end == digits.npos || end == 0 || end > 3) return false;
  for (std::size_t at = end; at < digits.size(); at = end) {
    end = std::min(digits.find(separator, at + 1), digits.size());
    if (end - at != 4) return false;
  }
  return digits.find_first_not_of(std::string("0123456789") + separator) == digits.npos;
}

// "3,14", "1,234,567", "1.100,00", "1 100,5", "1'100.5": no number here, but one to who wrote it.
bool is_number_in_other_notation(std::string_view text) {
  constexpr std::size_t kLongestNumber = 64;
  if (text.size() > kLongestNumber) return false;
  std::string number(text);
  for (const char* blank : {"\xc2\xa0", "\xe2\x80\xaf"})  // which does not break the line, and a thin one
    for (std::size_t at = 0; (at = number.find(blank)) != number.npos;)
      number.replace(at, std::string_view(blank).size(), " ");
  number = std::string(without_blanks(number));
  if (number.find_first_of("+-") == 0) number.erase(0, 1);
  for (const auto& [decimal, separators] : {std::pair(',', ". '"), {'.', ", '"}}) {
    const std::size_t end = std::min(number.find(decimal), number.size());
    const std::string whole = number.substr(0, end),
                      rest = end < number.size() ? '.' + number.substr(end + 1) : "";
    const bool is_whole = !whole.empty() && whole.find_first_not_of("0123456789") == whole.npos;
    const bool is_grouped =
        std::ranges::any_of(std::string_view(separators), [&](char one) { return are_grouped(whole, one); });
    if ((is_grouped || (is_whole && decimal == ',' && !rest.empty())) && table_number('0' + rest))
      return true;
  }
  return false;
}

}  // namespace

void look_at_cell(TableColumn& column, std::optional<double> number, std::string_view written,
                  const std::string& place) {
  if (number && std::isnan(*number)) return;
  ++column.cells;
  if (number) ++column.numbers;
  if (!number && is_number_in_other_notation(written)) ++column.other_numbers;
  if (!number && column.reason.empty()) column.reason = place + " is '" + shown(written) + "'";
  column.is_text = column.is_text || !number;
}

bool is_row_number(const TableColumn& column) {
  return column.name.empty() || column.is_index || is_unnamed(column.name) ||
         is_numbered(column.name, "__index_level_", "__");
}

bool is_mixed(const TableColumn& column) {
  return column.is_text && (column.numbers > 0 || column.other_numbers > 0);
}

std::string no_input_reason(const TableColumn& column) {
  if (is_row_number(column)) return "pandas' index";
  if (!is_mixed(column)) return column.reason;
  const bool has_numbers = column.numbers > 0;
  return column.reason + "; " + grouped(has_numbers ? column.numbers : column.other_numbers) +
         " of its first " + grouped(column.cells) + " cells are numbers" +
         (has_numbers ? "" : " in another notation than 1234.5, which is read");
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

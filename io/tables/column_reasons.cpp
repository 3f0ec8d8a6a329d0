#include "io/tables/column_reasons.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

void look_at_cell(TableColumn& column, std::optional<double> number, std::string_view written,
                  const std::string& place) {
  if (number && std::isnan(*number)) return;
  ++column.cells;
  if (number) ++column.numbers;
  if (!number && column.reason.empty()) column.reason = place + " is '" + shown(written) + "'";
  column.is_text = column.is_text || !number;
}

bool is_row_number(const TableColumn& column) {
  return column.name.empty() || column.is_index || is_unnamed(column.name) ||
         is_numbered(column.name, "__index_level_", "__");
}

bool is_mixed(const TableColumn& column) { return column.is_text && column.numbers > 0; }

std::string no_input_reason(const TableColumn& column) {
  if (is_row_number(column)) return "pandas' index";
  if (!is_mixed(column)) return column.reason;
  return column.reason + "; " + grouped(column.numbers) + " of its first " + grouped(column.cells) +
         " cells are numbers";
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

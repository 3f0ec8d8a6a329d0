#include "data/proposals/table_cells.h"

#include "data/proposals/parts.h"
#include "io/image_folders.h"
#include "io/tables/column_reasons.h"
#include "io/tables/row_numbers.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr const char* kTargetNames[] = {"target", "label", "labels", "class", "y"};

template <class Suits>
bool all_texts(const ColumnCells& cells, const Suits& suits) {
  return !cells.texts.empty() &&
         std::ranges::all_of(cells.texts, [&](const auto& text) { return suits(text.first); });
}

bool is_target_name(const std::string& name) {
  return std::ranges::find(kTargetNames, lower_case(name)) != std::end(kTargetNames);
}

// Dates, lists, and numbers of rows.
bool is_unread(const TableColumn& column) {
  return column.is_other || column.name.empty() || (is_row_number(column) && !is_target_name(column.name));
}

void require_columns(const std::string& path, const TableColumns& columns) {
  std::vector<const TableColumn*> unread;
  for (const TableColumn& other : columns.others) {
    if (is_target_name(other.name))
      throw UserError({path}, "column '" + shown(other.name) + "', by its name the target, is " +
                                  other.reason + ", which is not read");
    unread.push_back(&other);
  }
  if (columns.all.size() < 2 || columns.rows == 0)
    throw UserError({path}, "expected two columns at least, an input and a target, and rows" +
                                (unread.empty() ? "" : "; not read: " + reasons_text(unread)));
}

void find_target(TableColumns& columns) {
  columns.target_place = columns.all.size() - 1;
  for (const char* name : kTargetNames)
    for (std::size_t c = 0; c < columns.all.size(); ++c)
      if (lower_case(columns.all[c].column.name) == name) {
        columns.target_place = c;
        columns.is_named = true;
        return;
      }
}

}  // namespace

bool ColumnCells::names_pictures() const { return all_texts(*this, is_image_name); }

bool ColumnCells::names_parts() const {
  return all_texts(*this,
                   [](const std::string& text) { return is_trained_name(text) || is_evaluated_name(text); });
}

TableColumns columns_of(TableFile& file) {
  TableColumns columns;
  std::vector<WantedColumn> choice;
  std::vector<std::size_t> numbers, texts;
  std::vector<std::string> number_names;
  for (std::size_t c = 0; c < file.columns().size(); ++c) {
    const TableColumn& column = file.columns()[c];
    if (is_unread(column)) {
      columns.others.push_back(column);
      continue;
    }
    choice.push_back({c, column.is_text ? CellType::kText : CellType::kNumber});
    (column.is_text ? texts : numbers).push_back(columns.all.size());
    if (!column.is_text) number_names.push_back(column.name);
    columns.all.push_back({.column = column});
  }
  const auto place = [&] { return file.place(); };
  RowNumbers row_numbers(numbers.size());
  file.read(choice, [&](auto number_cells, auto text_cells) {
    row_numbers.add(number_cells);
    for (std::size_t c = 0; c < numbers.size(); ++c) columns.all[numbers[c]].add(number_cells[c], place);
    for (std::size_t c = 0; c < texts.size(); ++c) columns.all[texts[c]].add(text_cells[c], place);
    ++columns.rows;
  });
  require_columns(file.path(), columns);
  columns.row_numbers = row_numbers.among(number_names);
  find_target(columns);
  return columns;
}

}  // namespace tutti

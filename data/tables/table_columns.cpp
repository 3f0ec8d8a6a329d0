#include "data/tables/table_columns.h"

#include <algorithm>

#include "io/tables/column_reasons.h"
#include "recipe/wrong_key.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

std::string quoted(const std::string& name) { return "'" + shown(name) + "'"; }

}  // namespace

const TableColumn* column_named(const TableFile& file, const std::string& name) {
  const auto column = std::ranges::find(file.columns(), name, &TableColumn::name);
  return column == file.columns().end() || name.empty() ? nullptr : &*column;
}

const TableColumn& require_column(const TableFile& file, const std::string& name, const char* option) {
  if (const TableColumn* column = column_named(file, name)) return *column;
  std::vector<std::string> names;
  std::string all;
  for (const auto& column : file.columns()) {
    names.push_back(column.name);
    if (names.size() <= 20) all += (all.empty() ? "" : ", ") + shown(column.name);
  }
  const std::string near = nearest_name(name, names);
  throw WrongKey(option, {},
                 file.path() + " has no column " + quoted(name) +
                     (near.empty() ? "; it has " : "; did you mean " + quoted(near) + "? It has ") + all +
                     (names.size() > 20 ? ", ..." : "") +
                     (file.advice().empty() ? "" : "; " + file.advice()));
}

FittedTable::Target TableTargets::found_in(const TableFile& file) const {
  for (const std::string& name : columns) require_column(file, name, "target");
  if (columns.empty()) return FittedTable::Target::kNone;
  const bool is_text = require_column(file, columns[0], "target").is_text;
  const bool are_names =
      type == TableTarget::kClass || !classes.empty() || (type == TableTarget::kAuto && is_text);
  if (!is_list && are_names) return FittedTable::Target::kName;
  if (is_list && type == TableTarget::kClass)
    throw WrongKey("target_type", {}, "a list of targets are numbers; a class is one column");
  return is_list ? FittedTable::Target::kNumbers : FittedTable::Target::kNumber;
}

std::string TableTargets::advice(const TableFile& file, FittedTable::Target target) const {
  if (target != FittedTable::Target::kName || type != TableTarget::kAuto || !classes.empty()) return "";
  const TableColumn& column = require_column(file, columns[0], "target");
  if (!is_mixed(column)) return "";
  return "the target " + quoted(column.name) + " is taken for names of classes: " + no_input_reason(column) +
         "; target_type = \"number\" takes numbers alone, \"class\" is sure of this";
}

std::string advice_lines(const TableFiles& files, const std::vector<std::string>& texts) {
  std::string lines;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) lines += (lines.empty() ? "" : "\n") + text;
  };
  for (const auto& file : files)
    if (!file->advice().empty()) add(file->path() + ": " + file->advice());
  for (const std::string& text : texts) add(text);
  return lines;
}

bool has_targets(const TableFiles& files, const FittedTable& fitted) {
  if (fitted.skips_targets) return false;
  return std::ranges::any_of(files, [&](const auto& file) {
    return std::ranges::any_of(fitted.target, [&](const auto& name) { return column_named(*file, name); });
  });
}

void ColumnUses::add(const char* option, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!seen_.insert(name).second)
      throw WrongKey(option, {}, quoted(name) + " is named twice, or has another use");
}

ColumnChoice::ColumnChoice(const TableFile& file) : file_(file), chosen_(file.columns().size()) {
  for (std::size_t c = 0; c < file.columns().size(); ++c)
    if (!file.columns()[c].name.empty()) places_.emplace(file.columns()[c].name, c);
}

void ColumnChoice::add(const std::string& name, CellType type) {
  const auto place = places_.find(name);
  if (place == places_.end()) throw UserError({file_.path()}, "it has no column " + quoted(name));
  if (chosen_[place->second])
    throw UserError({file_.path()}, "the recipe has two uses of the column " + quoted(name));
  chosen_[place->second] = true;
  cells_.push_back({place->second, type});
}

void ColumnChoice::add_targets(const FittedTable& fitted) {
  const bool is_name = fitted.target_is == FittedTable::Target::kName;
  for (const std::string& name : fitted.target) add(name, is_name ? CellType::kText : CellType::kNumber);
}

}  // namespace tutti

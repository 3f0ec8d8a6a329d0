#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/arrays/array_dataset.h"
#include "data/tables/fitted_table.h"
#include "data/tables/table_target.h"
#include "io/tables/table_file.h"

namespace tutti {

using TableFiles = std::vector<std::unique_ptr<TableFile>>;  // one behind the other

// A recipe's options for the targets of a training table.
struct TableTargets {
  std::vector<std::string> columns = {};
  bool is_list = false;  // a sample's is [columns]
  TableTarget type = TableTarget::kAuto;
  std::vector<std::string> classes = {};  // names; empty: from the data, sorted
  int64_t ignore_index = kIgnoredTarget;

  // Throws WrongKey.
  FittedTable::Target found_in(const TableFile& file) const;
  // If cells that are no numbers make classes of a column of numbers: a line. "" = none.
  std::string advice(const TableFile& file, FittedTable::Target target) const;
};

// Null if there is none.
const TableColumn* column_named(const TableFile& file, const std::string& name);
// Throws WrongKey.
const TableColumn& require_column(const TableFile& file, const std::string& name, const char* option);
bool has_targets(const TableFiles& files, const FittedTable& fitted);
// The files' own advice, and those texts that are not empty, as lines.
std::string advice_lines(const TableFiles& files, const std::vector<std::string>& texts);

// Names that have one use each.
class ColumnUses {
 public:
  void add(const char* option, const std::vector<std::string>& names);  // throws WrongKey

 private:
  std::set<std::string> seen_;
};

// Chooses columns of a file to read, by name; there may be a hundred thousand.
class ColumnChoice {
 public:
  explicit ColumnChoice(const TableFile& file);

  // Throws UserError if the file lacks it, or the column is chosen already.
  void add(const std::string& name, CellType type);
  void add_targets(const FittedTable& fitted);
  const std::vector<WantedColumn>& cells() const { return cells_; }

 private:
  const TableFile& file_;
  std::unordered_map<std::string_view, std::size_t> places_;
  std::vector<bool> chosen_;
  std::vector<WantedColumn> cells_;
};

// Rows [shape[0], ...] in memory.
template <class Value>
StoredArray array_in_memory(const std::string& name, const std::string& file, std::vector<Value> values,
                            Shape shape) {
  const auto owner = std::make_shared<const std::vector<Value>>(std::move(values));
  const int64_t rows = shape[0];
  return {.name = name,
          .file = file,
          .where = "'" + name + "'",
          .dtype = c10::CppTypeToScalarType<Value>::value,
          .shape = std::move(shape),
          .rows = contiguous_rows(owner, std::as_bytes(std::span(*owner)), rows)};
}

}  // namespace tutti

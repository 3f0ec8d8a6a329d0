#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/arrays/array_dataset.h"
#include "data/tables/fitted_table.h"
#include "data/tables/table_columns.h"
#include "io/tables/table_file.h"

namespace tutti {

// Rows of tables, one file behind the other: "input" float32 [columns], and "target" by FittedTable::Target.
// With windows of series, "input" is [window, columns], and has the targets' numbers too. All numbers are in
// memory.
class TableDataset final : public ArrayDataset {
 public:
  // A recipe's options for a training table.
  struct Options {
    std::vector<std::string> inputs = {};   // empty: all columns of numbers but the targets
    std::vector<std::string> one_hot = {};  // columns of texts
    TableTargets targets = {};
    SeriesOptions series = {};
    bool normalize = false;
    bool normalize_target = false;            // of targets that are numbers
    bool fills_missing = false;               // with the column's mean
    const std::vector<bool>* rows = nullptr;  // true for each row to keep; null: all
  };

  static constexpr std::size_t kMostCategories = 4096, kMostClasses = 65536;
  static constexpr std::size_t kLongestName = 256;

  // The training's table. Means and deviations (of the population; 1 for a constant column) are sums in
  // float64 over all rows. Throws UserError with place and column, WrongKey.
  TableDataset(const TableFiles& files, const Options& options);
  // A table to evaluate or to predict, where the targets may be missing.
  TableDataset(const TableFiles& files, const FittedTable& fitted, int64_t ignore_index,
               const std::vector<bool>* rows = nullptr);

  uint64_t digest() const override;
  std::string fitted() const override { return fitted_.to_json(); }
  int64_t memory_bytes() const override { return bytes_; }

  // The row of each sample's target, among those kept; empty: that of the sample's number.
  const std::vector<int64_t>& target_rows() const { return target_rows_; }

 private:
  struct Read;
  explicit TableDataset(Read read, int64_t ignore_index);

  FittedTable fitted_;
  int64_t bytes_;
  std::vector<int64_t> target_rows_;
};

}  // namespace tutti

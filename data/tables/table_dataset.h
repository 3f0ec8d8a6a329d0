#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/arrays/array_dataset.h"
#include "data/tables/fitted_table.h"
#include "io/tables/table_file.h"

namespace tutti {

// A mistake in the recipe's choice of columns. `option` is the key.
class WrongColumns final : public UserError {
 public:
  WrongColumns(std::string option, const std::string& message)
      : UserError(message), option(std::move(option)) {}
  std::string option;
};

// Rows of tables, one file behind the other: "input" float32 [columns], and "target" by FittedTable::Target.
// All numbers are in memory.
class TableDataset final : public ArrayDataset {
 public:
  enum class TargetType { kAuto, kClass, kNumber };

  // What a recipe says of a training table.
  struct Options {
    std::vector<std::string> inputs = {};   // empty: all columns of numbers but the targets
    std::vector<std::string> one_hot = {};  // columns of texts
    std::vector<std::string> targets = {};
    bool is_list = false;  // of targets: a sample's is [columns]
    TargetType target_type = TargetType::kAuto;
    std::vector<std::string> classes = {};  // names; empty: from the data, sorted
    bool normalize = false;
    bool fills_missing = false;  // with the column's mean
    int64_t ignore_index = kIgnoredTarget;
  };
  using Files = std::vector<std::unique_ptr<TableFile>>;

  static constexpr std::size_t kMostCategories = 4096, kMostClasses = 65536;
  static constexpr std::size_t kLongestName = 256;
  static constexpr int64_t kMostGuessedClasses = 1000;

  // The training's table. Means and deviations (of the population; 1 for a constant column) are sums in
  // float64 over all rows. Throws UserError with place and column, WrongColumns.
  TableDataset(const Files& files, const Options& options);
  // A table to evaluate or to predict, where the targets may be missing.
  TableDataset(const Files& files, const FittedTable& fitted, int64_t ignore_index);

  uint64_t digest() const override;
  std::string fitted() const override { return fitted_.to_json(); }
  int64_t memory_bytes() const override { return bytes_; }

 private:
  struct Read;
  explicit TableDataset(Read read, int64_t ignore_index);

  FittedTable fitted_;
  int64_t bytes_;
};

}  // namespace tutti

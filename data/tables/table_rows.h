#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/arrays/array_dataset.h"
#include "data/tables/fitted_table.h"
#include "io/tables/row_numbers.h"
#include "io/tables/table_file.h"

namespace tutti {

// Throws UserError if so many float32, or tokens, are more than the machine's memory.
void require_memory(const TableFile& file, int64_t rows, int64_t columns);

// What float32 keeps of a column.
class Rounding {
 public:
  void add(double value) {
    if (value < least_) least_ = value;
    if (value > most_) most_ = value;
    const double error = std::abs(value - static_cast<double>(static_cast<float>(value)));
    if (error > largest_) largest_ = error;
  }
  // "within 64, of a range of 1400", if values that differ become equal or nearly so; else "".
  std::string text() const;

 private:
  double least_ = std::numeric_limits<double>::infinity(), most_ = -least_, largest_ = 0;
};

// Numbers of texts, by their order of appearance until `sort`, or as given.
class TextNumbers {
 public:
  // With names, no others are known.
  explicit TextNumbers(const std::vector<std::string>& names);

  // -1: an unknown text, and no more texts are taken.
  int64_t number(std::string_view text, std::size_t most);
  const std::vector<std::string>& names() const { return names_; }
  bool is_given() const { return is_given_; }
  // Sorts the names, as numbers if all names are numbers. Returns the new number of each.
  std::vector<int64_t> sort();

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::vector<std::string> names_;
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> numbers_;
  bool is_given_;
};

// The rows of tables as inputs and targets, in memory. Rows are read; then finish() fits and applies.
class TableRows {
 public:
  struct Options {
    bool fits = false;               // the training table, which determines missing parts of `fitted`
    bool normalizes = false;         // if it fits
    bool normalizes_target = false;  // if it fits, and the targets are numbers
    bool fills_missing = false;      // if it fits
    bool may_guess_classes = false;  // whole numbers from 0 without a gap are classes
    bool with_target = true;
    int64_t ignore_index = 0;
    const std::vector<bool>* rows = nullptr;  // true for each row to keep; null: all
  };

  TableRows(FittedTable fitted, const Options& options);

  // Columns in the order of the fitted table: numbers, texts, targets. Throws UserError with file, place,
  // column and value. `also`: sees each kept row first; its texts may stand before the fitted table's.
  void read(TableFile& file, const std::vector<WantedColumn>& columns, const VisitRow& also = {});
  void finish();
  // The array "target"; nullopt if the rows have none. `file`: for errors.
  std::optional<StoredArray> take_target(const std::string& file);

  const FittedTable& fitted() const { return fitted_; }
  int64_t rows() const { return rows_; }  // those kept
  // The row of the file that is visited, from 1.
  int64_t row_of_file() const { return static_cast<int64_t>(seen_ - first_seen_); }
  int64_t bytes() const;
  // On columns of which float32 keeps too little; lines, "" = none.
  std::string advice() const;

  RowNumbers row_numbers;        // among the columns of numbers, if `fits`
  std::vector<float> inputs;     // [rows, columns]
  std::vector<float> targets;    // [rows, columns] of kNumber and kNumbers
  std::vector<int64_t> classes;  // [rows] of kClass and kName

 private:
  bool keeps_next();
  void visit(std::span<const double> numbers, std::span<const std::string_view> texts);
  int64_t category(std::string_view text, std::size_t column);
  void add_target(std::span<const double> numbers, std::span<const std::string_view> texts);
  void add_shared_target(std::span<const double> numbers);
  void require_number(double value, const std::string& column) const;
  float input_of(double value, std::size_t column) const;
  float target_of(double value, std::size_t column) const;
  std::vector<double>& block_with_room();
  template <class Visit>
  void for_each_waiting(const Visit& visit);
  int64_t class_number(double value) const;
  int64_t name_number(TextNumbers& names, std::string_view text, const std::string& column, std::size_t most);
  void require_name(std::string_view text, const std::string& column, bool is_class) const;
  void reserve(const TableFile& file);
  void fit_missing();
  void fit_mean();
  void add_waiting();
  void add_waiting_targets();
  void sort_names();
  void guess_classes();
  void add_texts();
  [[noreturn]] void fail(const std::string& column, const std::string& message) const;

  FittedTable fitted_;
  Options options_;
  const TableFile* file_ = nullptr;        // being read
  std::size_t seen_ = 0, first_seen_ = 0;  // rows, also those not kept; before the file
  int64_t rows_ = 0;
  std::vector<int64_t> unknown_;  // rows of each column of texts with a category that no training row has
  std::size_t width_;             // numbers of a row
  std::vector<std::size_t> target_places_;    // among the inputs, if targets are inputs too
  bool waits_;                                // for all rows, since means are not known before
  std::vector<std::vector<double>> waiting_;  // numbers of whole rows, which are no inputs yet
  std::vector<double> waiting_targets_;       // [rows, columns], if they are to be normalized
  std::vector<Rounding> rounding_;            // of each column of numbers, then of each target
  std::vector<TextNumbers> texts_;            // of each column of texts
  TextNumbers names_;                         // of classes
  std::vector<int32_t> text_numbers_;         // [rows, columns of texts]
};

}  // namespace tutti

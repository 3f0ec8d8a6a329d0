#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/arrays/array_dataset.h"
#include "data/tables/table_columns.h"
#include "io/tables/table_file.h"

namespace tutti {

// The rows of tables in series, each in its order. Without a column of series each file is one.
class SeriesRows {
 public:
  explicit SeriesRows(const SeriesOptions& options) : options_(options) {}

  // Adds the columns to read, all texts. Throws WrongKey.
  void choose(const TableFile& file, ColumnChoice& choice) const;
  void begin_file() { ++file_; }
  // `texts`: of the next row, from the first of these columns on. Throws UserError with the place.
  void add(const TableFile& file, std::span<const std::string_view> texts);
  void finish();

  // After `finish`: all rows, one series behind the other, and where each begins there, and the last ends.
  const std::vector<int64_t>& rows() const { return rows_; }
  const std::vector<int64_t>& begins() const { return begins_; }
  // True for the last rows of each series, as large a part of each as `held_out` (below 1: the share, else
  // the number of all rows). Throws WrongKey of "split" if no series has the rows of a window there.
  std::vector<bool> last_rows(double held_out) const;

 private:
  void add_place(const TableFile& file, std::string_view text);

  SeriesOptions options_;
  int64_t file_ = -1;
  std::vector<std::string> names_;  // of each row: the series
  // Of each row: the cell that orders it, a number or a time.
  std::vector<double> numbers_;
  std::vector<std::string> places_;
  std::string form_;  // of times
  std::vector<int64_t> files_;
  std::vector<int64_t> rows_, begins_;
};

// Samples of consecutive rows of a series: `window` rows of the input, and the target `horizon` rows after
// the last of them.
class SeriesWindows {
 public:
  // Throws WrongKey if there is none.
  SeriesWindows(const SeriesRows& series, const SeriesOptions& options);

  // [rows, ...] as [samples, window, ...], or as the targets' rows [samples, ...].
  StoredArray inputs(StoredArray rows) const;
  StoredArray targets(StoredArray rows) const;
  // Of each sample: the row of its target, among those read.
  std::vector<int64_t> target_rows() const;
  // On series that are too short. "" = none.
  std::string advice() const { return advice_; }

 private:
  std::vector<int64_t> rows_;
  std::vector<int64_t> firsts_, targets_;  // places in rows_
  int64_t window_;
  std::string advice_;
};

}  // namespace tutti

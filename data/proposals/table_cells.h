#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/tables/class_guess.h"
#include "io/tables/table_file.h"

namespace tutti {

// What all rows of a column hold.
struct ColumnCells {
  static constexpr std::size_t kMostCategories = 50;  // of a column of texts that becomes an input
  static constexpr std::size_t kMostClasses = 1000;
  static constexpr int64_t kFewTexts = 10;  // which may all differ in a small table

  TableColumn column;
  std::string missing = {};  // the place of the first missing cell
  // How often each comes; at most kMostClasses + 1.
  std::map<std::string, int64_t, std::less<>> texts = {};
  int64_t text_cells = 0;  // not missing
  ClassGuess numbers = {};

  // As a target.
  int64_t classes() const { return column.is_text ? std::ssize(texts) : numbers.classes(); }
  // More than half of the cells differ, as texts do.
  bool is_distinct() const { return std::ssize(texts) > kFewTexts && 2 * std::ssize(texts) > text_cells; }
  bool is_long_text() const { return column.is_text && (texts.size() > kMostCategories || is_distinct()); }
  bool names_pictures() const;
  // The part of the data that each row belongs to: train, val.
  bool names_parts() const;

  // `place`: gives that of the row.
  template <class Place>
  void add(std::string_view text, const Place& place) {
    text_cells += text.data() != nullptr;
    if (!text.data())
      add_missing(place);
    else if (const auto known = texts.find(text); known != texts.end())
      ++known->second;
    else if (texts.size() <= kMostClasses)
      texts.emplace(text, 1);
  }
  template <class Place>
  void add(double number, const Place& place) {
    if (std::isnan(number))
      add_missing(place);
    else
      numbers.add(number);
  }
  template <class Place>
  void add_missing(const Place& place) {
    if (missing.empty()) missing = place();
  }
};

// All columns of a table that may be inputs or the target.
struct TableColumns {
  std::vector<ColumnCells> all;
  std::vector<TableColumn> others;
  std::vector<std::string> row_numbers;  // columns that count the rows
  std::size_t target_place = 0;
  bool is_named = false;   // the target, by its name; else it is the last
  bool is_chosen = false;  // by the user
  int64_t rows = 0;

  const ColumnCells& target() const { return all[target_place]; }
};

// Reads all rows. Throws UserError of a table without inputs, target or rows.
TableColumns columns_of(TableFile& file);

}  // namespace tutti

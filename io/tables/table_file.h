#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

struct TableColumn {
  std::string name;       // "" where the file has none
  bool is_text = false;   // as its first rows look, if the file does not say
  bool is_other = false;  // dates, lists and other types that are not read
  bool is_index = false;  // pandas' numbers of the rows, as the file says
  // For a column not of numbers: the file's type, or the first cell that is no number: "line 9 is '1,007'".
  std::string reason = {};
  int64_t numbers = 0, cells = 0;  // among the rows looked at; missing cells do not count
  int64_t other_numbers = 0;       // cells among them as "3,14", "1,007" and "1.100,00"
};

enum class CellType { kNumber, kText };

// A column to read, and as what.
struct WantedColumn {
  std::size_t column = 0;
  CellType type = CellType::kNumber;
};

// Cells of a row, in the requested order. A missing number is NaN, a missing text has no data. Texts are
// valid during the visit.
using VisitRow =
    std::function<void(std::span<const double> numbers, std::span<const std::string_view> texts)>;

// A file of rows of cells. Free of the project's other code: libtutti_parquet.so implements this interface.
class TableFile {
 public:
  static constexpr int64_t kInspectedRows = 1000;

  virtual ~TableFile() = default;
  virtual const std::vector<TableColumn>& columns() const = 0;
  virtual int64_t most_rows() const = 0;  // the file has no more; an estimate, for reserving memory
  // Calls visit for each row, in order. Throws an error that names file, row, column and value for a cell
  // that is no number; infinite numbers are none.
  virtual void read(const std::vector<WantedColumn>& columns, const VisitRow& visit) = 0;
  virtual const std::string& path() const = 0;
  // The row being visited, for errors: "line 17", "row 16".
  virtual std::string place() const = 0;
  // A remark to follow the file's name, if the file may be meant in another way. "" = none.
  virtual std::string advice() const { return {}; }
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tutti {

// Cells of a column, one a row. Texts may hold any bytes.
struct WrittenColumn {
  using Cells =
      std::variant<std::vector<std::string>, std::vector<int64_t>, std::vector<float>, std::vector<double>>;
  std::string name;
  Cells cells;

  std::size_t rows() const {
    return std::visit([](const auto& all) { return all.size(); }, cells);
  }
};
using WrittenRows = std::vector<WrittenColumn>;  // columns of equal length

// Writes a table, some rows at a time, in little memory.
class TableWriter {
 public:
  virtual ~TableWriter() = default;
  // Rows with the same columns in each call, of the same types. Throws OperatingError or UserError.
  virtual void add(const WrittenRows& rows) = 0;
  virtual void finish() = 0;  // once, behind the last rows
};

using WriteBytes = std::function<void(std::string_view bytes)>;

// CSV as RFC 4180 quotes cells, with a line of names, and lines that end with a line feed. Numbers have the
// fewest digits that read back to the same bits; "nan", "inf" and "-inf" are the others. Texts are written
// byte by byte.
std::unique_ptr<TableWriter> csv_writer(WriteBytes write);

// An object a line. Numbers as above, null for those that are not finite; bytes that are not UTF-8 become
// U+FFFD.
std::unique_ptr<TableWriter> json_lines_writer(WriteBytes write);

// A Parquet file, written by libtutti_parquet.so, which is loaded now. Texts as in JSON lines. Throws
// UserError.
std::unique_ptr<TableWriter> parquet_writer(const std::string& path);

// Appends a field of CSV, in quotes if it has a comma, a quote or a line's end (RFC 4180).
void append_csv_field(std::string& to, std::string_view text);

}  // namespace tutti

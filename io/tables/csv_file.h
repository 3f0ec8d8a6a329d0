#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/mapped_file.h"
#include "io/tables/table_file.h"

namespace tutti {

// A number as tables have it: decimal, True and False are 1 and 0, blanks around the number do not count.
// nullopt for other texts; NaN for the words that pandas takes for missing: an empty text, NA, #N/A, None,
// null, ...
std::optional<double> table_number(std::string_view text);

// Comma-separated values by RFC 4180: quoted cells hold delimiters, line breaks and doubled quotes. Rows end
// by LF, CRLF or CR; blank lines are ignored; a byte order mark is skipped. Mapped.
class CsvFile final : public TableFile {
 public:
  struct Format {
    char delimiter = ',';
    // Whether the first row has names; else columns are named "0", "1", ... nullopt: names, unless all cells
    // of the row are numbers other than pandas' names 0, 1, ...
    std::optional<bool> header = {};
  };

  // Reads the names of columns and kInspectedRows. Throws UserError with file, line, column and value, also
  // of read: NUL bytes, names that occur twice, names and texts that are not UTF-8, rows with more or fewer
  // cells than the first.
  CsvFile(const std::string& path, const Format& format);

  const std::vector<TableColumn>& columns() const override { return columns_; }
  int64_t most_rows() const override;
  void read(const std::vector<WantedColumn>& columns, const VisitRow& visit) override;
  const std::string& path() const override { return file_.path(); }
  std::string place() const override;
  std::string advice() const override { return advice_; }
  bool has_header() const { return has_header_; }
  // The character between cells, if not the comma: then the file has one column, whose name has that
  // character.
  std::optional<char> other_delimiter() const;

 private:
  class Row;

  void require_text() const;
  void find_columns(const Format& format);
  void name_columns(std::vector<std::string> names, bool are_given);
  static std::string advice_on_header(const std::vector<std::string>& first, bool has_names);
  void inspect();
  int line_breaks(const char* from, const char* to) const;
  int line_of(const char* place) const;
  std::string column_text(std::size_t column) const;
  [[noreturn]] void fail(const char* place, const std::string& message) const;

  MappedFile file_;
  std::string_view text_;
  char delimiter_;
  std::vector<TableColumn> columns_;
  std::string advice_;
  bool has_header_ = true;
  const char* first_row_ = nullptr;
  const char* row_ = nullptr;  // being visited
};

}  // namespace tutti

#include "io/tables/csv_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>

#include "io/tables/column_reasons.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The words of pandas.read_csv.
bool is_missing(std::string_view text) {
  constexpr std::array<std::string_view, 19> kNames = {
      "",     "#N/A", "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
      "<NA>", "N/A",  "NA",       "NULL", "NaN",     "None",     "n/a",  "nan",  "null"};
  return std::ranges::find(kNames, text) != kNames.end();
}

// For a text that is not UTF-8.
constexpr const char* kNotUtf8 = "not UTF-8 (Latin-1? iconv -f latin1 -t utf-8 converts it)";

bool is_number(std::string_view text) {
  const auto number = table_number(text);
  return number && !std::isnan(*number);
}

// The names that pandas gives columns without any: 0, 1, 2, ...
bool are_places(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] != std::to_string(i)) return false;
  return true;
}

// Numbers too small for a double are 0, as for strtod.
std::optional<double> out_of_range(std::string_view text) {
  const double value = std::strtod(std::string(text).c_str(), nullptr);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

bool ends_row(char byte) { return byte == '\n' || byte == '\r'; }

const char* after_row(const char* at, const char* end) {
  if (at == end) return end;
  return at + (*at == '\r' && at + 1 < end && at[1] == '\n' ? 2 : 1);
}

// By memchr, which is as fast as memory.
int64_t occurrences(std::string_view text, char byte) {
  int64_t count = 0;
  for (std::size_t at = text.find(byte); at != std::string_view::npos; at = text.find(byte, at + 1)) ++count;
  return count;
}

}  // namespace

std::optional<double> table_number(std::string_view text) {
  text = trimmed(text);
  if (is_missing(text)) return kMissing;
  if (text == "True" || text == "true" || text == "TRUE") return 1;
  if (text == "False" || text == "false" || text == "FALSE") return 0;
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) return out_of_range(text);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Reads cells one by one. Rows have `columns` cells, or any number if that is 0.
class CsvFile::Row {
 public:
  explicit Row(const CsvFile& file)
      : file_(file), delimiter_(file.delimiter_), end_(file.text_.data() + file.text_.size()) {}

  const char* skip_blank_lines(const char* at) const {
    while (at < end_ && ends_row(*at)) ++at;
    return at;
  }

  bool is_at_end_of_cell(const char* at) const { return at == end_ || *at == delimiter_ || ends_row(*at); }

  const char* end_of_cell(const char* at) const {
    if (at < end_ && *at == '"') return end_of_quoted(at);
    while (!is_at_end_of_cell(at)) ++at;
    return at;
  }

  // The content of the cell; `scratch` keeps one that has doubled quotes.
  static std::string_view content(const char* begin, const char* stop, std::string& scratch) {
    if (begin == stop || *begin != '"') return {begin, stop};
    const std::string_view inner(begin + 1, stop - 1);
    if (inner.find('"') == std::string_view::npos) return inner;
    scratch.clear();
    for (std::size_t i = 0; i < inner.size(); ++i) {
      scratch += inner[i];
      if (inner[i] == '"') ++i;
    }
    return scratch;
  }

  double number(const char*& at, std::size_t column) {
    double value = 0;
    if (const char* stop = short_number(at, value)) {
      at = stop;
      return value;
    }
    const auto [stop, error] = std::from_chars(at, end_, value);
    const bool is_plain = error == std::errc() && is_at_end_of_cell(stop) && std::isfinite(value);
    if (!is_plain) return quoted_or_odd_number(at, column);
    at = stop;
    return value;
  }

  std::string_view text(const char*& at, std::size_t column, std::string& scratch) const {
    const char* begin = at;
    at = end_of_cell(at);
    const std::string_view text = content(begin, at, scratch);
    if (!is_utf8(text)) file_.fail(begin, file_.column_text(column) + ": " + kNotUtf8);
    const bool is_quoted = begin < at && *begin == '"';
    return !is_quoted && is_missing(trimmed(text)) ? std::string_view() : text;
  }

  // The cells of a row; `at` is the next row afterwards. For names and a first look.
  std::vector<std::string> texts(const char*& at) const {
    std::vector<std::string> cells;
    for (std::string scratch;; ++at) {
      const char* begin = at;
      at = end_of_cell(at);
      cells.emplace_back(content(begin, at, scratch));
      if (at == end_ || *at != delimiter_) break;
    }
    at = after_row(at, end_);
    return cells;
  }

 private:
  // The end of a cell of at most eight digits, and perhaps a sign and a point; null for any other. Both
  // numbers of the quotient are exact, so the quotient is rounded as std::from_chars would.
  const char* short_number(const char* at, double& value) const {
    constexpr std::array<double, 9> kPowers = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
    const bool is_negative = at < end_ && *at == '-';
    const char *const begin = at + is_negative, *point = nullptr;
    int32_t digits = 0;
    for (at = begin; at < end_ && at < begin + 9; ++at) {
      const unsigned digit = static_cast<unsigned char>(*at) - unsigned{'0'};
      if (digit <= 9 && (point || at < begin + 8))
        digits = digits * 10 + static_cast<int32_t>(digit);
      else if (*at == '.' && !point)
        point = at;
      else
        break;
    }
    const int64_t decimals = point ? at - point - 1 : 0;
    if (at - begin == (point ? 1 : 0) || !is_at_end_of_cell(at)) return nullptr;
    value = digits / kPowers[static_cast<std::size_t>(decimals)];
    if (is_negative) value = -value;
    return at;
  }

  const char* end_of_quoted(const char* begin) const {
    const char* at = begin + 1;
    while (true) {
      at = static_cast<const char*>(std::memchr(at, '"', static_cast<std::size_t>(end_ - at)));
      if (!at) file_.fail(begin, "a quoted cell that does not end");
      if (at + 1 == end_ || at[1] != '"') break;
      at += 2;
    }
    if (!is_at_end_of_cell(++at)) file_.fail(begin, "text behind the closing quote of a cell");
    return at;
  }

  double quoted_or_odd_number(const char*& at, std::size_t column) {
    const char* begin = at;
    at = end_of_cell(at);
    const std::string_view written = content(begin, at, scratch_);
    const auto value = table_number(written);
    if (!value) file_.fail(begin, file_.column_text(column) + ": '" + shown(written) + "' is not a number");
    return *value;
  }

  const CsvFile& file_;
  const char delimiter_;
  const char* const end_;
  std::string scratch_;
};

CsvFile::CsvFile(const std::string& path, const Format& format)
    : file_(path),
      text_(reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()),
      delimiter_(format.delimiter) {
  require_text();
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  find_columns(format);
  inspect();
}

void CsvFile::require_text() const {
  if (text_.starts_with("\x1f\x8b") || text_.starts_with("PK\x03\x04"))
    throw UserError({file_.path()}, "a compressed file; expand it first");
  if (text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff"))
    throw UserError({file_.path()}, "UTF-16; save it as UTF-8");
  if (text_.starts_with("PAR1"))
    throw UserError({file_.path()}, "a Parquet file, which kind = \"parquet\" reads");
  if (text_.empty()) return;
  if (const void* nul = std::memchr(text_.data(), 0, text_.size()))
    fail(static_cast<const char*>(nul), "a NUL byte; this is not a text file, or a damaged one");
}

void CsvFile::find_columns(const Format& format) {
  const Row row(*this);
  const char* at = first_row_ = row.skip_blank_lines(text_.data());
  if (at == text_.data() + text_.size()) throw UserError({file_.path()}, "an empty table");
  const std::vector<std::string> first = row.texts(at);
  const auto numbers = std::ranges::count_if(first, is_number);
  has_header_ = format.header.value_or(numbers < std::ssize(first) || are_places(first));
  name_columns(first, has_header_);
  if (has_header_) first_row_ = at;
  if (!format.header) advice_ = advice_on_header(first, has_header_);
  if (const auto other = other_delimiter())
    advice_ = "there is one column; delimiter = " +
              (*other == '\t' ? "\"\\t\"" : '"' + std::string(1, *other) + '"') + " makes several of it";
}

// Columns may be named by numbers, as years are.
std::string CsvFile::advice_on_header(const std::vector<std::string>& first, bool has_names) {
  const auto number = std::ranges::find_if(first, is_number);
  if (number == first.end() || are_places(first)) return "";
  if (!has_names)
    return "its first line has nothing but numbers, so it is a row, and columns are named \"0\", \"1\", ...; "
           "header = true takes it for names";
  return "its first line has numbers (" + shown(*number) +
         ") and is taken for names; header = false takes it for a row";
}

std::optional<char> CsvFile::other_delimiter() const {
  if (columns_.size() != 1) return std::nullopt;
  for (const char delimiter : {'\t', ';', '|', ','})
    if (columns_[0].name.find(delimiter) != std::string::npos) return delimiter;
  return std::nullopt;
}

void CsvFile::name_columns(std::vector<std::string> names, bool are_given) {
  std::set<std::string> seen;
  for (std::string& name : names) {
    if (!are_given) name = std::to_string(columns_.size());
    if (!is_utf8(name))
      fail(first_row_, "the name of column " + std::to_string(columns_.size()) + " is " + kNotUtf8);
    if (!name.empty() && !seen.insert(name).second)
      fail(first_row_, "two columns are named '" + shown(name) + "'");
    columns_.push_back({.name = std::move(name)});
  }
}

// A column is of texts if one of its first cells is.
void CsvFile::inspect() {
  const Row row(*this);
  const char *at = row.skip_blank_lines(first_row_), *end = text_.data() + text_.size();
  int line = line_of(at);
  for (int64_t i = 0; i < kInspectedRows && at < end; ++i) {
    const std::string place = "line " + std::to_string(line);
    const char* const begin = at;
    const auto cells = row.texts(at);
    for (std::size_t c = 0; c < std::min(cells.size(), columns_.size()); ++c)
      look_at_cell(columns_[c], table_number(cells[c]), cells[c], place);
    at = row.skip_blank_lines(at);
    line += line_breaks(begin, at);
  }
}

int64_t CsvFile::most_rows() const {
  const int64_t ends = std::max(occurrences(text_, '\n'), occurrences(text_, '\r'));
  return std::min<int64_t>(ends, std::ssize(text_) / std::ssize(columns_)) + 1;
}

void CsvFile::read(const std::vector<WantedColumn>& columns, const VisitRow& visit) {
  constexpr int kSkipped = -1;
  struct Use {
    int number = kSkipped, text = kSkipped;
  };
  std::vector<Use> uses(columns_.size());
  int texts_wanted = 0, numbers_wanted = 0;
  for (const auto& [column, type] : columns)
    (type == CellType::kText ? uses[column].text : uses[column].number) =
        type == CellType::kText ? texts_wanted++ : numbers_wanted++;
  std::vector<double> numbers(static_cast<std::size_t>(numbers_wanted));
  std::vector<std::string_view> texts(static_cast<std::size_t>(texts_wanted));
  std::vector<std::string> scratch(texts.size());

  Row row(*this);
  const char* const end = text_.data() + text_.size();
  for (const char* at = row.skip_blank_lines(first_row_); at < end; at = row.skip_blank_lines(at)) {
    row_ = at;
    for (std::size_t column = 0;; ++column, ++at) {
      if (column == uses.size())
        fail(row_, "more cells than the " + std::to_string(uses.size()) + " columns");
      if (const int to = uses[column].number; to != kSkipped)
        numbers[static_cast<std::size_t>(to)] = row.number(at, column);
      else if (const int place = uses[column].text; place != kSkipped)
        texts[static_cast<std::size_t>(place)] =
            row.text(at, column, scratch[static_cast<std::size_t>(place)]);
      else
        at = row.end_of_cell(at);
      if (at < end && *at == delimiter_) continue;
      if (column + 1 < uses.size())
        fail(row_, "a row of " + std::to_string(column + 1) + " cells; there are " +
                       std::to_string(uses.size()) + " columns");
      break;
    }
    at = after_row(at, end);
    visit(numbers, texts);
  }
}

std::string CsvFile::place() const { return "line " + std::to_string(line_of(row_)); }

int CsvFile::line_breaks(const char* from, const char* to) const {
  int breaks = 0;
  for (const char* at = from; at < to; ++at)
    breaks += *at == '\n' || (*at == '\r' && (at + 1 == text_.data() + text_.size() || at[1] != '\n'));
  return breaks;
}

int CsvFile::line_of(const char* place) const {
  return 1 + line_breaks(reinterpret_cast<const char*>(file_.bytes().data()), place);
}

std::string CsvFile::column_text(std::size_t column) const {
  return "column '" + shown(columns_[column].name) + "'";
}

void CsvFile::fail(const char* place, const std::string& message) const {
  throw UserError({file_.path()}, "line " + std::to_string(line_of(place)) + ", " + message);
}

}  // namespace tutti

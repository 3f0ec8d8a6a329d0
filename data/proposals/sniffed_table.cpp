#include "data/proposals/sniffed_table.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "io/formats/file_head.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr std::size_t kSniffedBytes = 1 << 16, kMostLines = 200, kLeastLines = 5;
constexpr std::size_t kSurelyLines = 20, kSurelyCells = 4;  // that make a table of any cells
constexpr double kMostOfThem = 0.9;

using Cells = std::vector<std::string_view>;

// Lines that are not empty; the last may be cut off.
Cells lines_of(std::string_view text) {
  Cells lines;
  while (lines.size() < kMostLines && !text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == text.npos && text.size() == kSniffedBytes) break;
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

// Between delimiters that are not quoted. Of blanks, several are one.
Cells cells_of(std::string_view line, char delimiter) {
  Cells cells;
  bool is_quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') is_quoted = !is_quoted;
    if (i < line.size() && (is_quoted || line[i] != delimiter)) continue;
    if (delimiter != ' ' || i > begin) cells.push_back(line.substr(begin, i - begin));
    begin = i + 1;
  }
  return cells;
}

// As "-1.5e3", " 3,14" or "?", which is often written for a missing one.
bool is_numberlike(std::string_view cell) {
  while (cell.starts_with(' ')) cell.remove_prefix(1);
  while (cell.ends_with(' ')) cell.remove_suffix(1);
  const bool has_digit = cell.find_first_of("0123456789") != cell.npos;
  return cell == "?" || (has_digit && cell.find_first_not_of("0123456789+-.,eE") == cell.npos);
}

// Lines in cells by a delimiter.
class Split {
 public:
  Split(const Cells& lines, char delimiter) : lines_(lines.size()) {
    std::map<std::size_t, std::size_t> counts;
    std::vector<Cells> all;
    for (const std::string_view line : lines) {
      all.push_back(cells_of(line, delimiter));
      ++counts[all.back().size()];
    }
    for (const auto& [cells, count] : counts)
      if (count > alike_) cells_ = cells, alike_ = count;
    for (std::size_t i = 1; i < all.size(); ++i)
      if (all[i].size() == cells_) {
        has_tight_cells_ &= std::ranges::none_of(all[i], [](auto cell) { return cell.starts_with(' '); });
        numbers_ += std::ranges::count_if(all[i], is_numberlike);
      }
    first_is_row_ = std::ranges::equal(all[0], all[1], {}, is_numberlike, is_numberlike) &&
                    std::ranges::count_if(all[0], is_numberlike) > 0;
  }

  bool is_table() const {
    if (cells_ < 2 || static_cast<double>(alike_) < kMostOfThem * static_cast<double>(lines_)) return false;
    const bool is_sure = alike_ == lines_ && lines_ >= kSurelyLines && cells_ >= kSurelyCells &&
                         (has_tight_cells_ || static_cast<std::size_t>(numbers_) >= alike_ - 1);
    return is_sure || is_of_numbers();
  }
  bool is_of_numbers() const { return 2 * static_cast<std::size_t>(numbers_) >= (alike_ - 1) * cells_; }
  // True if the first line looks as the second.
  bool first_is_row() const { return first_is_row_; }

 private:
  std::size_t lines_, cells_ = 0, alike_ = 0;  // most lines have `cells_`
  int64_t numbers_ = 0;                        // behind the first line
  bool first_is_row_ = false;
  bool has_tight_cells_ = true;  // as those of a sentence or of code, behind ", ", are not
};

}  // namespace

std::optional<SniffedTable> sniff_table(const std::string& file) {
  const std::vector<uint8_t> head = file_head(file, kSniffedBytes);
  const Cells lines = lines_of({reinterpret_cast<const char*>(head.data()), head.size()});
  if (lines.size() < kLeastLines) return std::nullopt;
  for (const char delimiter : {'\t', ';', '|', ','})
    if (const Split split(lines, delimiter); split.is_table())
      return SniffedTable{.delimiter = delimiter, .first_is_row = split.first_is_row()};
  if (const Split split(lines, ' '); split.is_table() && split.is_of_numbers())
    throw UserError(
        {file},
        "looks like a table whose cells blanks separate; write one with commas: tr -s ' ' ',' makes "
        "some; if it is a text, --tokenizer tokenizer.json takes it for one");
  return std::nullopt;
}

}  // namespace tutti

#include "analysis/comparison/text_table.h"

#include <algorithm>

namespace tutti {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastOfLast = 16;  // of the last column, which may be cut
constexpr const char* kCut = "...";

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; }

std::size_t shown_width(const std::string& text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_character));
}

std::size_t shown_width(const TextColumn& column) {
  std::size_t width = shown_width(column.heading);
  for (const std::string& cell : column.cells) width = std::max(width, shown_width(cell));
  return width;
}

std::string cut_line(const std::string& line, std::size_t width) {
  if (width == 0 || shown_width(line) <= width) return line;
  std::size_t bytes = 0, characters = 0;
  for (; bytes < line.size(); ++bytes)
    if (!continues_character(line[bytes]) && ++characters + 3 > width) break;
  return line.substr(0, bytes) + kCut;
}

std::size_t shown_width(const std::vector<TextColumn>& columns) {
  std::size_t width = kGap * (columns.size() - 1);
  for (std::size_t i = 0; i < columns.size(); ++i)
    width +=
        i + 1 < columns.size() ? shown_width(columns[i]) : std::min(shown_width(columns[i]), kLeastOfLast);
  return width;
}

std::string aligned_line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += cells[i];
    if (i + 1 < cells.size()) line.append(widths[i] - shown_width(cells[i]) + kGap, ' ');
  }
  return line;
}

}  // namespace

std::string table_text(std::vector<TextColumn> columns, int width) {
  const auto limit = static_cast<std::size_t>(std::max(width, 0));
  std::string left_out;
  while (limit > 0 && shown_width(columns) > limit) {
    const auto last = std::ranges::max_element(columns, {}, &TextColumn::rank);
    if (last->rank == 0) break;
    left_out += (left_out.empty() ? "" : ", ") + last->heading;
    columns.erase(last);
  }
  std::vector<std::string> headings;
  std::vector<std::size_t> widths;
  for (const TextColumn& column : columns) {
    headings.push_back(column.heading);
    widths.push_back(shown_width(column));
  }
  std::string text = cut_line(aligned_line(headings, widths), limit) + '\n';
  for (std::size_t row = 0; row < columns.front().cells.size(); ++row) {
    std::vector<std::string> cells;
    for (const TextColumn& column : columns) cells.push_back(column.cells[row]);
    text += cut_line(aligned_line(cells, widths), limit) + '\n';
  }
  return left_out.empty() ? text : text + "left out, for lack of width: " + left_out + "; --csv has all\n";
}

}  // namespace tutti

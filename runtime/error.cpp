#include "runtime/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "runtime/lack_of_memory.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kGutter = 5;       // columns of line numbers
constexpr std::size_t kMaxExcerpt = 90;  // characters of a line
constexpr std::size_t kBefore = 30;      // of them before the caret, if the line is longer

std::string placed(const Position& position, const std::string& message) {
  return position.file.empty() ? message : on_one_line(position.text()) + ": " + message;
}

std::string_view line_of(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return "";
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find_first_of("\r\n"));
}

// The characters, each one column wide: tabs and other control characters are blanks.
std::vector<std::string> characters_of(std::string_view line) {
  std::vector<std::string> characters;
  for (const char c : as_utf8(line)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) == 0x80 && !characters.empty())
      characters.back() += c;
    else
      characters.emplace_back(1, byte < 0x20 || byte == 0x7f ? ' ' : c);
  }
  return characters;
}

struct Excerpt {
  std::string text, carets;
};

// The line with carets below the columns; of a long line a part.
Excerpt cut(std::string_view line, Columns columns) {
  const std::vector<std::string> characters = characters_of(line);
  const auto at = std::min(static_cast<std::size_t>(columns.first - 1), characters.size());
  const bool whole = characters.size() <= kMaxExcerpt;
  const std::size_t begin = whole || at <= kBefore ? 0 : at - kBefore;
  const std::size_t end = whole ? characters.size() : std::min(characters.size(), begin + kMaxExcerpt);
  Excerpt excerpt{begin > 0 ? "..." : "", begin > 0 ? "   " : ""};
  for (std::size_t i = begin; i < end; ++i) excerpt.text += characters[i];
  if (end < characters.size()) excerpt.text += "...";
  const auto count = static_cast<std::size_t>(std::max(columns.count, 1));
  excerpt.carets += std::string(at - begin, ' ') +
                    std::string(std::clamp<std::size_t>(count, 1, std::max<std::size_t>(end - at, 1)), '^');
  return excerpt;
}

}  // namespace

std::string Position::text() const { return line > 0 ? file + ":" + std::to_string(line) : file; }

Position Position::key_position() const {
  Position key = *this;
  if (key_columns.first > 0) key.columns = key_columns;
  return key;
}

std::string Position::excerpt() const {
  if (!source || columns.first == 0) return "";
  const Excerpt shown = cut(line_of(*source, line), columns);
  const std::string number = line > 0 ? std::to_string(line) : "";
  const std::string gutter(std::max<std::size_t>(kGutter, number.size()), ' ');
  return '\n' + gutter.substr(number.size()) + number + " | " + shown.text + '\n' + gutter + " | " +
         shown.carets;
}

RunError::RunError(EndKind kind, const Position& position, const std::string& message)
    : std::runtime_error(placed(position, message) + position.excerpt()),
      kind_(kind),
      position_(position),
      message_(message) {}

std::string RunError::headline() const { return placed(position_, message_); }

RankEnd end_by(const std::exception& error) {
  const auto* known = dynamic_cast<const RunError*>(&error);
  const EndKind other = found_no_memory(error) ? EndKind::kOutOfMemoryElsewhere : EndKind::kProgramError;
  return {known ? known->kind() : other, error_message(error)};
}

std::string handled_error() try { throw; } catch (const std::exception& error) {
  return error_message(error);
} catch (...) {
  return "an unknown exception";
}

std::string rank_message(int rank, const std::string& what) {
  const std::string who = "rank " + std::to_string(rank);
  const bool is_said = what.starts_with(who + ' ') || what.starts_with(who + ':');
  return is_said ? what : who + ": " + what;
}

void assertion_failed(const char* condition, const char* file, int line, const std::string& why) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s (%s)\n", file, line, condition, printable(why).c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace tutti

#include "io/json_rows.h"

#include <algorithm>
#include <filesystem>

#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::string_view kJsonBlanks = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

bool has_json_rows(const std::string& path) {
  const std::string ending = lower_case(std::filesystem::path(path).extension().string());
  return ending == ".jsonl" || ending == ".ndjson" || ending == ".json";
}

JsonRows::JsonRows(std::string path, std::string_view text) : path_(std::move(path)), text_(text) {
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  const std::size_t first = text_.find_first_not_of(kJsonBlanks);
  is_array_ = first != std::string_view::npos && text_[first] == '[';
  if (is_array_) at_ = first + 1;
}

std::optional<std::string_view> JsonRows::next() { return is_array_ ? next_element() : next_line(); }

std::string JsonRows::place() const { return (is_array_ ? "object " : "line ") + std::to_string(number_); }

std::optional<std::string_view> JsonRows::next_line() {
  while (at_ < text_.size()) {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    ++number_;
    at_ = end + 1;
    if (line.find_first_not_of(kJsonBlanks) != std::string_view::npos) return line;
  }
  return std::nullopt;
}

void JsonRows::pass_blanks() { at_ = std::min(text_.find_first_not_of(kJsonBlanks, at_), text_.size()); }

std::optional<std::string_view> JsonRows::next_element() {
  pass_blanks();
  const bool closes = at_ < text_.size() && text_[at_] == ']';
  if (!ended_ && closes && number_ == 0) ++at_, ended_ = true;  // an empty one
  if (ended_) {
    pass_blanks();
    if (at_ < text_.size()) fail("something stands behind the array");
    return std::nullopt;
  }
  ++number_;
  const std::size_t begin = at_;
  at_ = end_of_element();
  const std::string_view element = text_.substr(begin, at_ - begin);
  if (element.empty()) fail(place() + " is missing");
  pass_blanks();
  if (at_ == text_.size()) fail("the array does not end: the file is cut off in or behind " + place());
  if (text_[at_] != ',' && text_[at_] != ']') fail("no JSON behind " + place() + ": expected , or ]");
  ended_ = text_[at_] == ']';
  ++at_;
  return element;
}

std::size_t JsonRows::end_of_element() const {
  int64_t depth = 0;
  bool quoted = false;
  for (std::size_t i = at_; i < text_.size(); ++i) {
    const char c = text_[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (depth == 0 && (c == ',' || c == ']')) return i;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth == 0 && (c == ']' || c == '}')) return i + 1;
  }
  return text_.size();
}

void JsonRows::fail(const std::string& what) const { throw UserError({path_}, what); }

}  // namespace tutti

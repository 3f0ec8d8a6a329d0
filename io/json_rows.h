#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti {

// By the ending: .jsonl, .ndjson, .json.
bool has_json_rows(const std::string& path);

// The rows of a file of JSON: its lines except blank lines or, after a first "[", the elements of an array,
// which may be spread over lines. Rows are cut, not read: at most one row is looked at.
class JsonRows {
 public:
  // `path`: for errors.
  JsonRows(std::string path, std::string_view text);

  // The next row; none at the end. Throws UserError if the array is damaged there.
  std::optional<std::string_view> next();

  bool is_array() const { return is_array_; }
  int64_t number() const { return number_; }  // of the row given last, from 1: its line, or its element
  std::string place() const;                  // "line 3", "object 3"

 private:
  std::optional<std::string_view> next_line();
  std::optional<std::string_view> next_element();
  void pass_blanks();
  std::size_t end_of_element() const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  std::string_view text_;
  std::size_t at_ = 0;
  bool is_array_ = false, ended_ = false;
  int64_t number_ = 0;
};

}  // namespace tutti

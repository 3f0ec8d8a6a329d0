#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tutti {

// A value that is JSON text already, for a nested object.
struct JsonText {
  std::string json;
};
using JsonTexts = std::vector<std::string>;

// Writes a JSON object on one line, keys in the order given. float32 values have 9 digits and doubles 17, so
// that no bits are lost. NaN and infinities become strings.
using JsonValue = std::variant<int64_t, float, double, bool, std::string, std::vector<double>, JsonTexts,
                               std::vector<JsonTexts>, JsonText>;
using JsonFields = std::vector<std::pair<std::string, JsonValue>>;
std::string json_line(const JsonFields& fields);

// The integer member `key` of a JSON object, or `fallback` if the text is no object with that member.
int64_t json_integer(const std::string& line, const std::string& key, int64_t fallback);

// The member `key`, a text or an integer, of a JSON object, as text.
std::optional<std::string> json_text_or_integer(const std::string& text, const std::string& key);

// Removes the members for which `left_out` is true. A text that is no JSON object is returned unchanged.
std::string json_without(const std::string& line,
                         const std::function<bool(const std::string& key)>& left_out);

// Read a line of json_line: the names of members in alphabetical order, a number, a list of numbers. Throw
// UserError if the text is no object with that member.
std::vector<std::string> json_keys(const std::string& line);
double json_number(const std::string& line, const std::string& key);
std::vector<double> json_numbers(const std::string& line, const std::string& key);

// The members of a JSON object that are numbers, in the order written; json_line's "nan", "inf" and "-inf"
// are numbers too. `valid` is false for a text that is no JSON object.
struct JsonNumbers {
  bool valid = false;
  std::vector<std::pair<std::string, double>> members;
};
JsonNumbers json_numbers_of(std::string_view line);

}  // namespace tutti

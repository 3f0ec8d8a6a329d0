#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tutti {

// A value that is JSON already: what json_line gave, for an object in an object.
struct JsonText {
  std::string json;
};
using JsonTexts = std::vector<std::string>;

// A JSON object on one line, keys in the order given; float32 values with the 9 digits that give back all
// their bits, doubles with 17. Values that JSON cannot write (NaN, infinities) become strings.
using JsonValue = std::variant<int64_t, float, double, bool, std::string, std::vector<double>, JsonTexts,
                               std::vector<JsonTexts>, JsonText>;
using JsonFields = std::vector<std::pair<std::string, JsonValue>>;
std::string json_line(const JsonFields& fields);

// The integer member `key` of a JSON object, or `fallback` when the text is no such object.
int64_t json_integer(const std::string& line, const std::string& key, int64_t fallback);

// The text without the members that `left_out` names; no object is as it was.
std::string json_without(const std::string& line,
                         const std::function<bool(const std::string& key)>& left_out);

// What json_line wrote, read back: the members' names in their order (that of the alphabet), a number, a list
// of numbers. Throws UserError where the text is no object that has it.
std::vector<std::string> json_keys(const std::string& line);
double json_number(const std::string& line, const std::string& key);
std::vector<double> json_numbers(const std::string& line, const std::string& key);

}  // namespace tutti

#include "io/json/json_line.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "io/json/json_text.h"
#include "runtime/error.h"

namespace tutti {
namespace {

std::string number(double value, const char* format) {
  if (!std::isfinite(value)) return std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

struct Writer {
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(float value) const { return number(value, "%.9g"); }
  std::string operator()(double value) const { return number(value, "%.17g"); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const JsonText& value) const { return value.json; }
  // Bytes that are no UTF-8 must not throw: any text may be logged.
  std::string operator()(const std::string& value) const {
    return without_raw_controls(
        nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  template <class Value>
  std::string operator()(const std::vector<Value>& values) const {
    std::string list = "[";
    for (const Value& value : values) list += (list.size() > 1 ? ", " : "") + (*this)(value);
    return list + "]";
  }
};

nlohmann::json object_of(const std::string& line) {
  auto object = parse_json(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) throw UserError("expected a JSON object, found '" + line + "'");
  return object;
}

nlohmann::json member_of(const std::string& line, const std::string& key) {
  const auto object = object_of(line);
  if (!object.contains(key)) throw UserError("there is no '" + key + "' in '" + line + "'");
  return object[key];
}

double number_of(const nlohmann::json& value, const std::string& key) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return kInfinity;
  if (value == "-inf") return -kInfinity;
  throw UserError("'" + key + "' is no number: " + value.dump());
}

}  // namespace

std::string json_line(const JsonFields& fields) {
  std::string line = "{";
  for (const auto& [key, value] : fields) {
    if (line.size() > 1) line += ", ";
    line += Writer{}(key) + ": " + std::visit(Writer{}, value);
  }
  return line + "}";
}

int64_t json_integer(const std::string& line, const std::string& key, int64_t fallback) {
  const auto object = parse_json(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains(key) || !object[key].is_number_integer()) return fallback;
  return object[key].get<int64_t>();
}

std::optional<std::string> json_text_or_integer(const std::string& text, const std::string& key) {
  const auto object = parse_json(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains(key)) return std::nullopt;
  const auto& member = object[key];
  if (member.is_string()) return member.get<std::string>();
  return member.is_number_integer() ? std::optional(member.dump()) : std::nullopt;
}

std::string json_without(const std::string& line,
                         const std::function<bool(const std::string& key)>& left_out) {
  const auto object = parse_json<nlohmann::ordered_json>(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return line;
  auto rest = nlohmann::ordered_json::object();
  for (const auto& [key, value] : object.items())
    if (!left_out(key)) rest[key] = value;
  return rest.dump();
}

std::vector<std::string> json_keys(const std::string& line) {
  const auto object = object_of(line);
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

double json_number(const std::string& line, const std::string& key) {
  return number_of(member_of(line, key), key);
}

std::vector<double> json_numbers(const std::string& line, const std::string& key) {
  const auto list = member_of(line, key);
  if (!list.is_array()) throw UserError("'" + key + "' is no list: " + list.dump());
  std::vector<double> numbers;
  for (const auto& element : list) numbers.push_back(number_of(element, key));
  return numbers;
}

namespace {

std::optional<double> number_in(const nlohmann::ordered_json& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return kInfinity;
  return text == "-inf" ? std::optional(-kInfinity) : std::nullopt;
}

}  // namespace

JsonNumbers json_numbers_of(std::string_view line) {
  const auto object = parse_json<nlohmann::ordered_json>(line, nullptr, /*allow_exceptions=*/false);
  JsonNumbers numbers{object.is_object(), {}};
  if (!numbers.valid) return numbers;
  for (const auto& [key, value] : object.items())
    if (const auto number = number_in(value)) numbers.members.emplace_back(key, *number);
  return numbers;
}

}  // namespace tutti

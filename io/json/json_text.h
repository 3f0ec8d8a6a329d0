#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/error.h"

namespace tutti {

// The largest depth of arrays and objects in a JSON text. Copying and writing a value are recursive; no file
// of the program has more than ten levels.
inline constexpr int kMaxJsonDepth = 64;
inline constexpr int kJsonTooDeep = 1000;  // the number of that error; the library's are below

// Offset of the byte that exceeds kMaxJsonDepth, or nullopt.
std::optional<std::size_t> byte_too_deep(std::string_view text);

// Json::parse with a limit on depth, for JSON that other programs may have written. Throws Json::parse_error,
// also for a text that is nested too deeply, or has a number beyond a double. Without exceptions an invalid
// value is "discarded".
template <class Json = nlohmann::json>
Json parse_json(std::string_view text, typename Json::parser_callback_t callback = nullptr,
                bool allow_exceptions = true) {
  if (const auto too_deep = byte_too_deep(text)) {
    if (!allow_exceptions) return Json(Json::value_t::discarded);
    throw Json::parse_error::create(kJsonTooDeep, *too_deep + 1, "it is nested too deeply", nullptr);
  }
  try {
    return Json::parse(text, std::move(callback), allow_exceptions);
  } catch (const typename Json::out_of_range& error) {
    throw Json::parse_error::create(101, 0, error.what(), nullptr);
  }
}

// Escapes the controls (runtime/printable.h) from DEL on, which JSON may have unescaped.
std::string without_raw_controls(const std::string& json);

// Describes, in plain words, an error in a JSON text or in one of its values.
std::string json_problem(const nlohmann::json::exception& error);

// A number that must be whole; the library makes integers also of numbers that do not fit. Throws UserError.
template <class Json>
int64_t whole_number(const Json& json) {
  if (!json.is_number_integer()) throw UserError("it has a number that is not whole where one must be");
  return json.template get<int64_t>();
}

// The member of an object; the fallback if `object` is no object, or the member is absent or of another type.
template <class Json>
std::string text_member(const Json& object, const char* key, const std::string& fallback = "") {
  const auto member = object.find(key);
  return member != object.end() && member->is_string() ? member->template get<std::string>() : fallback;
}
template <class Json>
int64_t integer_member(const Json& object, const char* key, int64_t fallback = 0) {
  const auto member = object.find(key);
  if (member == object.end() || !member->is_number()) return fallback;
  const double value = member->template get<double>();
  if (!(std::abs(value) < 9e18)) return fallback;
  return member->is_number_float() ? static_cast<int64_t>(value) : member->template get<int64_t>();
}

}  // namespace tutti

#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace tutti {

// The largest depth of arrays and objects in a JSON text. Copying and writing a value are recursive; no file
// of the program has more than ten levels.
inline constexpr int kMaxJsonDepth = 64;

// Offset of the byte that exceeds kMaxJsonDepth, or nullopt.
std::optional<std::size_t> byte_too_deep(std::string_view text);

// Json::parse with a limit on depth, for all JSON that others may have written. Throws Json::parse_error,
// also for a text that is nested too deeply, or has a number beyond a double. Without exceptions an invalid
// value is "discarded".
template <class Json = nlohmann::json>
Json parse_json(std::string_view text, typename Json::parser_callback_t callback = nullptr,
                bool allow_exceptions = true) {
  if (const auto too_deep = byte_too_deep(text)) {
    if (!allow_exceptions) return Json(Json::value_t::discarded);
    throw Json::parse_error::create(101, *too_deep + 1, "it is nested too deeply", nullptr);
  }
  try {
    return Json::parse(text, std::move(callback), allow_exceptions);
  } catch (const typename Json::out_of_range& error) {
    throw Json::parse_error::create(101, 0, error.what(), nullptr);
  }
}

}  // namespace tutti

#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace tutti {

// Levels of arrays and objects in a JSON text that is read. What is done with a value (a copy, a dump) calls
// itself once a level; no file of the program has more than ten.
inline constexpr int kDeepestJson = 64;

// The byte that opens one level too many, or nothing.
std::optional<std::size_t> byte_too_deep(std::string_view text);

// The one reader of JSON: Json::parse for texts that others may have written. Throws Json::parse_error, also
// for what is nested too deeply; without exceptions the value is a discarded one.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text, typename Json::parser_callback_t callback = nullptr,
                bool allow_exceptions = true) {
  const auto too_deep = byte_too_deep(text);
  if (!too_deep) return Json::parse(text, std::move(callback), allow_exceptions);
  if (!allow_exceptions) return Json(Json::value_t::discarded);
  throw Json::parse_error::create(101, *too_deep + 1, "it is nested too deeply", nullptr);
}

}  // namespace tutti

#include "io/json/json_text.h"

#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {

std::optional<std::size_t> byte_too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (quoted) continue;
    if (c == ']' || c == '}') --depth;
    if ((c == '[' || c == '{') && ++depth > kMaxJsonDepth) return i;
  }
  return std::nullopt;
}

// Control characters occur only in texts, where \u is allowed. Line breaks between values stay.
std::string without_raw_controls(const std::string& json) {
  std::string escaped;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const Control control = control_at(json, i);
    if (control.code < 0x7f) {
      escaped += json[i];
    } else {
      escaped += formatted("\\u%04x", control.code);
      i += control.bytes - 1;
    }
  }
  return escaped;
}

// The library's numbers of errors: https://json.nlohmann.me/home/exceptions
std::string json_problem(const nlohmann::json::exception& error) {
  constexpr int kWrongType = 302, kNoSuchKey = 403;
  if (error.id == kJsonTooDeep) return "it is nested too deeply";
  if (const auto* syntax = dynamic_cast<const nlohmann::json::parse_error*>(&error))
    return "no JSON from byte " + std::to_string(syntax->byte) + " on";
  const std::string_view text = error.what();  // "[json.exception.out_of_range.403] key 'files' not found"
  if (error.id == kWrongType || error.id == kNoSuchKey) return std::string(text.substr(text.find("] ") + 2));
  return "a part of it is of another type than expected";
}

}  // namespace tutti

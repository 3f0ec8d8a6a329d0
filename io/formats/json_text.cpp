#include "io/formats/json_text.h"

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

}  // namespace tutti

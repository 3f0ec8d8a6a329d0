#include "runtime/text_style.h"

#include <cstdlib>

#include "runtime/terminal_output.h"

namespace tutti {
namespace {

// SGR parameters of ECMA-48.
const char* parameters_of(TextStyle style) {
  switch (style) {
    case TextStyle::kBold:
      return "1";
    case TextStyle::kDim:
      return "2";
    case TextStyle::kRed:
      return "1;31";
    case TextStyle::kGreen:
      return "32";
    case TextStyle::kYellow:
      return "1;33";
    case TextStyle::kCyan:
      return "36";
  }
  return "";
}

}  // namespace

bool shows_colors(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return (!no_color || !*no_color) && terminal_columns(descriptor) > 0;
}

std::string styled(bool on, TextStyle style, std::string_view text) {
  if (!on) return std::string(text);
  return std::string("\033[") + parameters_of(style) + 'm' + std::string(text) + "\033[0m";
}

}  // namespace tutti

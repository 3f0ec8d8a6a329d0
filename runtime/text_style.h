#pragma once

#include <string>
#include <string_view>

namespace tutti {

enum class TextStyle { kBold, kDim, kRed, kGreen, kYellow, kCyan };

// True if text for people may have colors there: a terminal (terminal_columns), and neither NO_COLOR is set
// (https://no-color.org) nor TERM "dumb".
bool shows_colors(int descriptor);

// The text in the style, if `on`. Not around a line break.
std::string styled(bool on, TextStyle style, std::string_view text);

}  // namespace tutti

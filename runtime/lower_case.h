#pragma once

#include <string>
#include <string_view>

namespace tutti {

// With the letters A to Z as a to z, and everything else as it is.
std::string lower_case(std::string_view text);

}  // namespace tutti

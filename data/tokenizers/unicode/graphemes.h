#pragma once

#include <cstddef>
#include <string_view>

namespace tutti {

// The bytes of the extended grapheme cluster with which a valid UTF-8 text, which is not empty, begins: UAX
// 29 by the tables of code_points.h, but for rule GB9c. (Clusters of that rule have more bytes than any
// cluster that is used.)
std::size_t first_grapheme(std::string_view text);

}  // namespace tutti

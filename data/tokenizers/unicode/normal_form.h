#pragma once

#include <string>
#include <string_view>

namespace tutti {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// Writes the normal form of a valid UTF-8 text to `out` (UAX 15), by the tables of code_points.h. Returns
// false, and leaves `out` empty, if the text is normal already.
bool normalize(NormalForm form, std::string_view text, std::string& out);

}  // namespace tutti

#pragma once

#include <string>
#include <string_view>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// `given` as `key` wants it, in one form: a number is a double though an integer was written, a time is a
// text ("20ep" for the integer 20). Throws UserError that says what was expected.
Setting checked(const Key& key, const Setting& given);

// The key's default, checked in the same way; a key that may be absent gives none.
Setting fallback_value(const Key& key, std::string path, Position position);

// The unit of a time: iter, ep, ba, sp, tok, dur or sec ("1h20m40s" is sec). "" when the text is no time as
// training's Time understands it: whole numbers, but for dur.
std::string time_unit(std::string_view text);

}  // namespace tutti

#pragma once

#include <string>
#include <string_view>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// Checks `given` against `key` and returns its normal form: a number is a double, even if written as an
// integer; a time is a text ("20ep" for the integer 20). Throws UserError with the expected form.
Setting checked(const Key& key, const Setting& given);

// The key's default, checked in the same way; none if the key may be absent.
Setting fallback_value(const Key& key, std::string path, Position position);

// The unit of a time: iter, ep, ba, sp, tok, dur or sec ("1h20m40s" is sec). "" if training's Time would
// reject the text: all numbers other than dur's are whole.
std::string time_unit(std::string_view text);

}  // namespace tutti

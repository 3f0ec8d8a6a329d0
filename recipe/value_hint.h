#pragma once

#include <functional>
#include <string>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// The value, as TOML, that is probably meant by one that the key does not accept: 1e-3 for "1e-3", "5ep" for
// "5 epochs", [128] for 128, "amp_bf16" for "bf16"; "" if there is no guess that `accepts` accepts.
std::string value_hint(const Key& key, const Setting& given,
                       const std::function<bool(const Setting&)>& accepts);

}  // namespace tutti

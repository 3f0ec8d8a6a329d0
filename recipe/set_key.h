#pragma once

#include <utility>

#include "recipe/setting.h"

namespace tutti {

// Gives a key of a resolved section, which has all keys, this value.
inline void set_key(Setting& section, const char* key, Setting::Value value) {
  section.find(key)->value = std::move(value);
}

}  // namespace tutti

#pragma once

#include <string>

#include "recipe/catalog.h"

namespace tutti {

inline constexpr const char* kPluginKind = "plugin";

// The kind by which a recipe calls what the library of [plugins] brings; job/plugin.h says how.
inline Entry plugin_entry(const std::string& noun) {
  return {kPluginKind,
          "What the library of [plugins] brings.",
          {{"name", KeyType::kText, "", "the library's name for the " + noun},
           {"options", KeyType::kAny, "none", "a table that is the library's own affair"}}};
}

}  // namespace tutti

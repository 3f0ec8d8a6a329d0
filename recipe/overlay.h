#pragma once

#include <string>

#include "recipe/setting.h"

namespace tutti {

// Gives a value, and all below, the path that it has in a recipe.
void place(Setting& setting, const std::string& path);

// Puts the keys of `change`, a placed table, in place of those of the written recipe `base`. A list replaces
// a list, a table of another kind replaces a table, and values of --set stay.
void overlay(Setting& base, const Setting& change);

}  // namespace tutti

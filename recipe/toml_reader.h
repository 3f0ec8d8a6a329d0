#pragma once

#include <span>
#include <string>

#include "recipe/setting.h"

namespace tutti {

// A recipe's TOML as written, every value with the line it stands on, and over it the `overrides`: "a.b=v"
// each, where v is TOML, else a bare text; a number in the path ("algorithms.0.alpha") counts tables of a
// list. Its position is the file as a whole. Throws UserError when the file cannot be read, is no TOML, or an
// override is malformed.
Setting read_recipe(const std::string& path, std::span<const std::string> overrides = {});

// The same from TOML text; `file` is the name that errors give.
Setting parse_recipe(const std::string& toml, const std::string& file,
                     std::span<const std::string> overrides = {});

// The recipe as TOML that reads back to the same; what is none is left out.
std::string write_recipe(const Setting& recipe);

}  // namespace tutti

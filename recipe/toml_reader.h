#pragma once

#include <span>
#include <string>
#include <vector>

#include "recipe/setting.h"

namespace tutti {

// A recipe on the command line.
struct RecipeFile {
  std::string path;
  std::vector<std::string> overrides;  // "a.b=v" each
};

// Reads a recipe's TOML with the line of every value, and applies the `overrides`: "a.b=v" each, with v in
// TOML or a bare text; a number in the path ("algorithms.0.alpha") is an index of a list of tables. The
// result's position is the whole file. Throws UserError if the file cannot be read, is no TOML, or an
// override is malformed.
Setting read_recipe(const std::string& path, std::span<const std::string> overrides = {});

// The same from TOML text; `file` is the name in errors.
Setting parse_recipe(const std::string& toml, const std::string& file,
                     std::span<const std::string> overrides = {});

// Writes the recipe as TOML that reads back to the same recipe, without values that are none.
std::string write_recipe(const Setting& recipe);

}  // namespace tutti

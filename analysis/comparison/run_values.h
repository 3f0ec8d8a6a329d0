#pragma once

#include <map>
#include <string>
#include <vector>

#include "recipe/setting.h"

namespace tutti {

// The values of a resolved recipe by dotted key, as TOML; of a list of tables those of each table:
// "algorithms.0.alpha".
using RecipeValues = std::map<std::string, std::string>;
RecipeValues recipe_values(const Setting& recipe);

// The keys of which the recipes have different values, by name; without keys that differ in any case, as
// run_name.
std::vector<std::string> differing_keys(const std::vector<RecipeValues>& recipes);

// A value as TOML without the quotes of a text.
std::string without_quotes(const std::string& toml);

// The metric by which runs are ranked.
struct Headline {
  std::string name = "loss";  // of an evaluation, "eval/Accuracy", or "loss", the training's
  bool less_is_better = true;
};

// The metric that a recipe watches ([checkpoint] best, else an early_stopper), if it is `measured`; else the
// first of an evaluation for which more is better, else the first, else the loss.
Headline headline_of(const std::vector<const Setting*>& recipes, const std::vector<std::string>& measured);

}  // namespace tutti

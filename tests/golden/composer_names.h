#pragma once

#include <string>

namespace tutti {

// What a recipe calls a class that a golden case names, by what `tutti explain` knows of it:
// ("[optimizer]", "torch.optim.SGD") is "sgd". Throws for a class that it does not know.
std::string recipe_kind(const std::string& section, const std::string& composer_class);

}  // namespace tutti

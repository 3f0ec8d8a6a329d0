#pragma once

#include <string>

namespace tutti {

// What a recipe calls a class that a golden case names, by what `tutti explain` knows of it:
// ("[optimizer]", "torch.optim.SGD") is "sgd". Throws for a class that it does not know.
std::string recipe_kind(const std::string& section, const std::string& composer_class);

// Whether an argument of PyTorch's optimizers says how a step is computed, and not what it comes to: "fused".
bool is_of_no_number(const std::string& argument);

}  // namespace tutti

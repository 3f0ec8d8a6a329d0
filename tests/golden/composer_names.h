#pragma once

#include <string>

namespace tutti {

// The recipe's name of a class in a golden case, as known to `tutti explain`: ("[optimizer]",
// "torch.optim.SGD") is "sgd". Throws for a class that it does not know.
std::string recipe_kind(const std::string& section, const std::string& composer_class);

// True if an argument of PyTorch's optimizers changes only how a step is computed, not its result: "fused".
bool is_of_no_number(const std::string& argument);

}  // namespace tutti

#pragma once

#include <string>
#include <vector>

#include "recipe/setting.h"

namespace tutti {

// Every key that the two recipes do not have alike, with both values: "optimizer.lr (0.1 against 0.05)"; a
// value that is none or absent is "nothing".
std::vector<std::string> recipe_difference(const Setting& a, const Setting& b);

}  // namespace tutti

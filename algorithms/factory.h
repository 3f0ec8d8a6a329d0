#pragma once

#include <memory>

#include "recipe/setting.h"
#include "training/engine/algorithm.h"

namespace tutti {

// Makes the algorithm that a resolved [[algorithms]] section names. Not for kind = "plugin".
std::shared_ptr<Algorithm> make_algorithm(const Setting& section);

}  // namespace tutti

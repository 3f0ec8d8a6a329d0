#pragma once

#include <memory>

#include "recipe/setting.h"
#include "training/engine/algorithm.h"

namespace tutti {

// What one of [[algorithms]] of a resolved recipe names; not a plugin's.
std::shared_ptr<Algorithm> make_algorithm(const Setting& section);

}  // namespace tutti

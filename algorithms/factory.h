#pragma once

#include <memory>

#include "runtime/setting.h"
#include "training/algorithm.h"

namespace tutti {

// What one of [[algorithms]] of a resolved recipe names; not a plugin's.
std::shared_ptr<Algorithm> make_algorithm(const Setting& section);

}  // namespace tutti

#pragma once

#include <string>
#include <vector>

#include "io/weights/pickle.h"

namespace tutti {

// True for the Python objects that state dicts name.
bool is_known_to_pickles(const std::string& global);

// What calling the global with these arguments gives. Throws std::invalid_argument, with what is wrong, if it
// takes no such arguments or cannot be called.
PickledValue called(const std::string& global, const std::vector<PickledValue*>& arguments);

// The storage of a persistent id, ("storage", type, key, device, numbers). Throws std::invalid_argument.
PickledValue storage_of(const PickledValue& id);

}  // namespace tutti

#pragma once

#include "io/weights/pickle.h"

namespace tutti {

// The storage of a persistent id, ("storage", type, key, device, numbers). Throws std::invalid_argument.
PickledValue storage_of(const PickledValue& id);

}  // namespace tutti

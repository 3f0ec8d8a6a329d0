#pragma once

#include <cstdlib>

namespace tutti {

// Whether `make nightly` runs the tests, whose sweeps are then longer than in `make test`.
inline bool is_nightly() { return std::getenv("TUTTI_NIGHTLY") != nullptr; }

}  // namespace tutti

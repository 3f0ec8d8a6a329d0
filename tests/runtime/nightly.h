#pragma once

#include <cstdlib>

namespace tutti {

// True if `make nightly` runs the tests, with longer sweeps than `make test`.
inline bool is_nightly() { return std::getenv("TUTTI_NIGHTLY") != nullptr; }

}  // namespace tutti

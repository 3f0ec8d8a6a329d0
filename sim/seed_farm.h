#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/simulation.h"

namespace tutti {

// The seeds that one process simulates, one after the other: first, first + stride, ... up to last.
struct SeedShare {
  uint64_t first = 1;
  uint64_t last = 1;
  uint64_t stride = 1;
};

// Simulates seeds first ... last in `jobs` processes at once, each on a core of its own. `command` starts a
// process for a share; it prints begin_line and seed_line for each of its seeds. One that does not survive a
// seed is a finding of that seed, and another goes on behind it. `take` is called for every seed, in no
// order. Throws OperatingError when a process cannot be started, or none of its seeds ever begins.
void farm_seeds(uint64_t first, uint64_t last, int jobs,
                const std::function<std::vector<std::string>(const SeedShare&)>& command,
                const std::function<void(const SeedResult&)>& take);

}  // namespace tutti

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/clock.h"
#include "sim/simulate/simulation.h"

namespace tutti {

// The seeds that one process simulates, one after the other: first, first + stride, ... up to last.
struct SeedShare {
  uint64_t first = 1;
  uint64_t last = 1;
  uint64_t stride = 1;
};

// So long may a process of the farm print nothing: an actor that never yields stops all the others, and
// made-up time with them.
inline constexpr Nanoseconds kSeedTimeout = std::chrono::seconds(120);

// Simulates seeds first ... last in `jobs` processes at once, each on a core of its own. `command` starts a
// process for a share; it prints begin_line and result_line for each of its seeds, and heartbeat_line in
// between. One that does not survive a seed, or is silent for longer than `patience` and so killed, is a
// finding of that seed (or of the next, where none had begun; or of its last, where all were done), and
// another goes on behind it. `take` is called once for every seed, in no order. Throws OperatingError when a
// process cannot be started, or when two of a share, one after the other, end before a seed begins; UserError
// where a process prints a refusal_line, since no seed can start then.
void simulate_seeds(uint64_t first, uint64_t last, int jobs,
                    const std::function<std::vector<std::string>(const SeedShare&)>& command,
                    const std::function<void(const SeedResult&)>& take, Nanoseconds timeout = kSeedTimeout);

}  // namespace tutti

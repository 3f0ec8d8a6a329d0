#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/clock.h"
#include "runtime/error.h"
#include "sim/simulate/simulation.h"

namespace tutti {

// The lines that a worker prints for its parent process. Parsers return nullopt for other lines.

// The result of a seed.
std::string result_line(const SeedResult& result);
std::optional<SeedResult> parse_result_line(const std::string& line);

// Printed before a seed, to name the seed of a crash.
std::string begin_line(uint64_t seed);
std::optional<uint64_t> parse_begin_line(const std::string& line);

// Printed in place of all seeds: why the job cannot start, a mistake of the user's or a lack of memory.
std::string refusal_line(const RunError& why);
std::optional<RunError> parse_refusal_line(const std::string& line);

// Printed every few seconds while a seed, or the run without faults, makes progress.
std::string heartbeat_line();

// The seeds of one worker process: first, first + stride, ... up to last.
struct SeedShare {
  uint64_t first = 1;
  uint64_t last = 1;
  uint64_t stride = 1;
};

// The longest silence of a worker. An actor that never gives up the run token would stop simulated time.
inline constexpr Nanoseconds kSeedTimeout = std::chrono::seconds(120);

// The cores that this process may run on.
std::vector<int> allowed_cores();

// Simulates seeds first ... last in `jobs` worker processes, each on its own core. `command` returns the
// command line of a worker for a share; the worker prints begin_line and result_line for each seed, and
// heartbeat_line in between. `on_result` is called once for every seed, in any order.
//
// A worker that crashes, or is killed after no output for `timeout`, is a finding of the simulated seed;
// between seeds, of its next seed, or after all seeds, of its last. Another worker continues after that seed.
// Throws OperatingError if a worker cannot be started, or if two workers in a row end before a seed begins;
// UserError, or RunError of a lack of memory, if a worker prints a refusal_line.
void simulate_seeds(uint64_t first, uint64_t last, int jobs,
                    const std::function<std::vector<std::string>(const SeedShare&)>& command,
                    const std::function<void(const SeedResult&)>& on_result,
                    Nanoseconds timeout = kSeedTimeout);

}  // namespace tutti

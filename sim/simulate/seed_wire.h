#pragma once

#include <optional>
#include <string>

#include "sim/simulate/simulation.h"

namespace tutti {

// What came of a seed as one line of text, on its way from the process that simulated it.
std::string result_line(const SeedResult& result);
// Nothing when the line is something else.
std::optional<SeedResult> parse_result_line(const std::string& line);

// Before a seed is simulated, so that it can be named when the process does not survive it.
std::string begin_line(uint64_t seed);
std::optional<uint64_t> parse_begin_line(const std::string& line);

// In place of all seeds, where the job cannot start: why.
std::string refusal_line(const std::string& why);
std::optional<std::string> parse_refusal_line(const std::string& line);

// Every now and then while a seed, or what all are held against, goes on.
std::string heartbeat_line();

}  // namespace tutti

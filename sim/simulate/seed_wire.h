#pragma once

#include <optional>
#include <string>

#include "sim/simulate/simulation.h"

namespace tutti {

// The lines that a worker prints for the process that started it. Parsers return nothing for other lines.

// The result of a seed.
std::string result_line(const SeedResult& result);
std::optional<SeedResult> parse_result_line(const std::string& line);

// Printed before a seed, to name it if the worker crashes.
std::string begin_line(uint64_t seed);
std::optional<uint64_t> parse_begin_line(const std::string& line);

// Printed in place of all seeds: why the job cannot start.
std::string refusal_line(const std::string& why);
std::optional<std::string> parse_refusal_line(const std::string& line);

// Printed every few seconds while a seed, or the run without faults, makes progress.
std::string heartbeat_line();

}  // namespace tutti

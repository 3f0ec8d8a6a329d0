#pragma once

#include <string>

#include "runtime/disk.h"

namespace tutti {

// Writes a recorded start of a run (as recorded_start counts), which may be under way, as a trace that
// Perfetto opens; returns a line of what it came to. Reads and writes at the same time, so that memory grows
// by a few bytes for each control packet, and not with the run. Throws UserError where there is no journal or
// `out` cannot be written to.
std::string write_timeline(Disk& disk, const std::string& run_dir, const std::string& out, int64_t start = 0);

}  // namespace tutti

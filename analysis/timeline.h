#pragma once

#include <string>

#include "runtime/disk.h"

namespace tutti {

// Writes a recorded attempt of a run (numbered as in recorded_start) as a trace for Perfetto; the run may be
// under way. Returns a summary line. Memory grows by a few bytes per control packet, and by the numbers of
// metrics.jsonl, which are drawn as counters. Throws UserError if there is no journal or `out` cannot be
// written.
std::string write_timeline(Disk& disk, const std::string& run_dir, const std::string& out, int64_t start = 0);

}  // namespace tutti

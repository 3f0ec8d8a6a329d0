#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/formats/trace_file.h"
#include "runtime/clock.h"
#include "runtime/disk.h"

namespace tutti {

// The track of a rank's `i`th row of operators or kernels.
using ProfilerTrack = std::function<TraceFile::Track(int rank, int64_t i)>;

// Draws the records of [profiler] (training/callbacks/writers/profiler.h): a row for each thread with
// operators and each stream of a device. `zeros`: the start of the trace by each rank's clock; earlier events
// are left out. Returns the number of events. Other files are ignored.
int64_t draw_profiler_traces(const Disk& disk, const std::string& run_dir,
                             const std::vector<TimePoint>& zeros, const ProfilerTrack& track,
                             TraceFile& trace);

}  // namespace tutti

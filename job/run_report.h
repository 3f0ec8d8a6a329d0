#pragma once

#include <string>

#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

// When this process was started, unix time in seconds: what a time to first step counts from.
double process_started_s();

std::string rank_log_path(const std::string& run_dir, int rank);

// Whether what rank 0 prints ends on a terminal. mpirun gives its ranks a terminal of their own, so its
// output counts.
bool prints_to_terminal();

// Warns where the journal is not whole.
void log_trouble(Log& log, const Recorder& recorder);

// The last that every actor did, into the log's file: for a run that ended badly.
void log_last_events(Log& log, const Recorder& recorder, TimePoint now);

}  // namespace tutti

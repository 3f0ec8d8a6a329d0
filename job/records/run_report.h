#pragma once

#include <string>

#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

// When this process was started, unix time in seconds. The time to first step counts from here.
double process_started_s();

std::string rank_log_path(const std::string& run_dir, int rank);

// Warns if the journal is incomplete.
void log_trouble(Log& log, const Recorder& recorder);

// Logs the last trace events of all actors, for a run that ended badly.
void log_last_events(Log& log, const Recorder& recorder, TimePoint now);

}  // namespace tutti

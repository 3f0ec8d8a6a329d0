#pragma once

#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

// When this process was started, unix time in seconds: what a time to first step counts from.
double process_started_s();

// The last that every actor did, into the log: for a run that ended badly.
void log_last_happenings(Log& log, const Recorder& recorder, TimePoint now);

}  // namespace tutti

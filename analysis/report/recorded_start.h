#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/work_times.h"
#include "io/journal/recorded_run.h"
#include "runtime/trace_event.h"

namespace tutti {

// A rank's part of an attempt.
struct RankSummary {
  int rank = 0;
  std::string host;
  WorkTimes times;
  std::string end;         // the journal's last record; "" if the rank was killed or is still running
  std::string incomplete;  // why the journal ends before the rank, or cannot be read; ""
};

// Something that went wrong in a step, and was survived.
struct StepFault {
  int64_t step = 0;
  int rank = 0;
  TraceKind kind = TraceKind::kSkipped;  // kOutOfMemory, kSkipped or kCheckpointFailed
};

// The contents of an attempt's journals.
struct StartSummary {
  RecordedJob job;  // rank 0's
  RecordedSteps steps;
  std::vector<RankSummary> ranks;
  std::vector<StepFault> faults;
};

// Reads the journals in an attempt's folder once. A journal that cannot be read is a rank's `incomplete`.
StartSummary summary_of_start(const std::string& folder);

}  // namespace tutti

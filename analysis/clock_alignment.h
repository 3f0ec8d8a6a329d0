#pragma once

#include <string>
#include <vector>

#include "io/journal/recorded_run.h"
#include "runtime/clock.h"
#include "runtime/trace_event.h"

namespace tutti {

// Where ranks meet, as their Sync's messages and events tell: nobody is out of a meeting before all are in.
struct Meeting {
  const char* entered;  // the message with which Sync enters it
  const char* left;     // the event that its Sync records, or the message to its Supervisor, when it is over
};
inline constexpr Meeting kAgreement{"Agree", "Agreed"};
inline const Meeting kStepEnd{"FinishStep", name(TraceKind::kVerdict)};

// What to add to the times of each rank's journal, so that they tell the time of rank 0's clock. Clocks that
// fit as they are (of one host, or of one process) stay as they are.
std::vector<Nanoseconds> align_clocks(const RecordedRun& run);

}  // namespace tutti

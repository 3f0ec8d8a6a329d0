#pragma once

#include <vector>

#include "io/journal/recorded_run.h"
#include "runtime/clock.h"
#include "runtime/trace_event.h"

namespace tutti {

// A collective of all ranks: no rank leaves before all ranks have entered.
struct Meeting {
  const char* entered;  // the message with which Sync enters
  const char* left;     // the event of Sync, or the message to the Supervisor, at the end
};
inline constexpr Meeting kAgreement{"Agree", "Agreed"};
inline const Meeting kStepEnd{"FinishStep", name(TraceKind::kVerdict)};

// Returns, for each rank, the shift that turns times in the rank's journal into times of rank 0's clock. The
// shift is 0 where no meeting of the ranks contradicts 0 (one host, one process).
std::vector<Nanoseconds> align_clocks(const RecordedRun& run);

}  // namespace tutti

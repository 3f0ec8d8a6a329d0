#pragma once

#include <string>
#include <vector>

#include "io/journal/recorded_run.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
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

// Writes a recorded attempt of a run (numbered as in recorded_start) as a trace for Perfetto; the run may be
// under way. Returns a summary line. Memory grows by a few bytes per control packet, and by the numbers of
// metrics.jsonl, which are drawn as counters. Throws UserError if there is no journal or `out` cannot be
// written.
std::string write_timeline(Disk& disk, const std::string& run_dir, const std::string& out, int64_t start = 0);

}  // namespace tutti

#include <algorithm>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// True if all ranks ended for lack of memory and no fault kept them from saving.
bool gave_up(const SimAttempt& attempt) {
  using enum FaultKind;
  for (const FaultKind fault : {kDeath, kPowerLoss, kHang, kDiskFull, kWriteError})
    if (attempt.had_fault(fault)) return false;
  return !attempt.damages_files() && std::ranges::all_of(attempt.ends, gave_up_for_memory);
}

}  // namespace

void check_memory(const SimRun& run, Findings& findings) {
  for (const SimAttempt& attempt : run.attempts) {
    for (const HeldMemory& held : attempt.held)
      findings.push_back("in " + attempt.name() + ", rank " + std::to_string(held.rank) + ": step " +
                         std::to_string(held.step) + ": " + std::to_string(held.bytes) +
                         " bytes of the aborted step are still held");
  }
}

void check_nothing_lost(const SimRun& run, Findings& findings) {
  for (const SimAttempt& attempt : run.attempts) {
    if (!gave_up(attempt)) continue;
    const int64_t trained = attempt.last_committed();
    const int64_t published = attempt.published.empty() ? 0 : attempt.published.rbegin()->first;
    const int64_t saved = std::max(attempt.resumed_at, published);
    if (saved < trained)
      findings.push_back(attempt.name() + " ran out of memory after step " + std::to_string(trained) +
                         ", and saved what was trained until step " + std::to_string(saved) +
                         " only: " + attempt.end_text());
  }
}

}  // namespace tutti

#include <algorithm>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// All ranks ended for lack of memory, and nothing else kept them from saving.
bool gave_up(const StartSeen& start) {
  using enum FaultKind;
  for (const FaultKind fault : {kDeath, kPowerLoss, kHang, kDiskFull, kWriteError})
    if (start.had(fault)) return false;
  if (start.damages()) return false;
  return std::ranges::all_of(start.ends, gave_up_for_memory);
}

}  // namespace

void check_nothing_lost(const RunSeen& run, Findings& findings) {
  for (std::size_t i = 0; i < run.starts.size(); ++i) {
    const StartSeen& start = run.starts[i];
    if (!gave_up(start)) continue;
    const int64_t trained = start.last_committed();
    const int64_t published = start.published.empty() ? 0 : start.published.rbegin()->first;
    const int64_t saved = std::max(start.resumed_at, published);
    if (saved < trained)
      findings.push_back("start " + std::to_string(i + 1) + " ran out of memory after step " +
                         std::to_string(trained) + ", and saved what was trained until step " +
                         std::to_string(saved) + " only: " + start.end_text());
  }
}

}  // namespace tutti

#include "sim/invariants/history.h"

#include <algorithm>

namespace tutti {

bool SimAttempt::well() const {
  return stuck.empty() &&
         std::all_of(ends.begin(), ends.end(), [](const RankEnd& end) { return end.well(); });
}

int64_t SimAttempt::last_step() const {
  int64_t last = 0;
  for (const auto& rank : steps)
    if (!rank.empty()) last = std::max(last, rank.rbegin()->first);
  return last;
}

int64_t SimAttempt::last_committed() const {
  int64_t last = 0;
  for (const auto& rank : steps)
    for (const auto& [step, seen] : rank)
      if (seen.weights != 0) last = std::max(last, step);
  return last;
}

bool SimAttempt::stopped() const {
  return std::any_of(ends.begin(), ends.end(),
                     [](const RankEnd& end) { return end.kind == EndKind::kStopped; });
}

bool SimAttempt::had_fault(FaultKind kind) const {
  return std::any_of(faults.begin(), faults.end(),
                     [&](const auto& fault) { return fault.second.kind == kind && fault.second.count > 0; });
}

bool SimAttempt::had_fault(const FaultRule& rule) const {
  const auto fault = faults.find(rule.label);
  return fault != faults.end() && fault->second.count > 0;
}

bool SimAttempt::damages_files() const {
  return had_fault(FaultKind::kLostWrite) || had_fault(FaultKind::kTornWrite);
}

bool gave_up_for_memory(const RankEnd& end) {
  return end.kind == EndKind::kOutOfMemoryInStep || end.kind == EndKind::kOutOfMemoryInEvaluation;
}

std::string SimAttempt::end_text() const {
  if (!stuck.empty()) return stuck;
  std::string text;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const RankEnd& end = ends[rank];
    if (end.well()) continue;
    const std::string how = end.kind == EndKind::kKilled ? " was killed"
                            : end.reason.empty()
                                ? " ended with exit code " + std::to_string(exit_code(end.kind))
                                : ": " + end.reason;
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(rank) + how;
  }
  if (!text.empty()) return text;
  return stopped() ? "stopped on request" : "trained to the end";
}

}  // namespace tutti

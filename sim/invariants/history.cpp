#include "sim/invariants/history.h"

#include <algorithm>

namespace tutti {

bool StartSeen::well() const {
  return stuck.empty() &&
         std::all_of(ends.begin(), ends.end(), [](const RankEnd& end) { return end.well(); });
}

int64_t StartSeen::last_step() const {
  int64_t last = 0;
  for (const auto& rank : steps)
    if (!rank.empty()) last = std::max(last, rank.rbegin()->first);
  return last;
}

int64_t StartSeen::last_committed() const {
  int64_t last = 0;
  for (const auto& rank : steps)
    for (const auto& [step, seen] : rank)
      if (seen.weights != 0) last = std::max(last, step);
  return last;
}

bool StartSeen::stopped() const {
  return std::any_of(ends.begin(), ends.end(), [](const RankEnd& end) { return end.stopped; });
}

bool StartSeen::happened(const std::string& kind) const {
  return std::any_of(faults.begin(), faults.end(), [&](const auto& fault) {
    const auto& [label, count] = fault;
    return count > 0 && (label == kind || label.starts_with(kind + " ("));
  });
}

bool StartSeen::happened(const FaultRule& rule) const {
  const auto found = faults.find(rule.label);
  return found != faults.end() && found->second > 0;
}

bool StartSeen::damages() const { return happened("lost_write") || happened("torn_write"); }

std::string StartSeen::end_text() const {
  if (!stuck.empty()) return stuck;
  std::string text;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const RankEnd& end = ends[rank];
    if (end.well()) continue;
    const std::string how = end.killed           ? " was killed"
                            : end.reason.empty() ? " ended with exit code " + std::to_string(end.exit_code)
                                                 : ": " + end.reason;
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(rank) + how;
  }
  if (!text.empty()) return text;
  return stopped() ? "stopped on request" : "trained to the end";
}

}  // namespace tutti

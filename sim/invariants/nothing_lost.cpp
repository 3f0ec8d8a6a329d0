#include <algorithm>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// All ranks ended for lack of memory, or because another one did; nothing else kept them from saving.
bool gave_up(const StartSeen& start) {
  for (const char* fault : {"death", "power_loss", "hang", "disk_full", "write_error"})
    if (start.happened(fault)) return false;
  if (start.damages()) return false;
  return std::ranges::all_of(start.ends, [](const RankEnd& end) {
    return end.reason.find("ran out of memory") != std::string::npos;
  });
}

// Algorithms may have changed there what is trained: there is no way back but to the last checkpoint.
bool in_an_evaluation(const StartSeen& start) {
  return std::ranges::any_of(
      start.ends, [](const RankEnd& end) { return end.reason.find(": eval_") != std::string::npos; });
}

int64_t last_committed(const StartSeen& start) {
  int64_t last = 0;
  for (const auto& rank : start.steps)
    for (const auto& [step, seen] : rank)
      if (seen.weights != 0) last = std::max(last, step);
  return last;
}

}  // namespace

void check_nothing_lost(const RunSeen& run, Findings& findings) {
  for (std::size_t i = 0; i < run.starts.size(); ++i) {
    const StartSeen& start = run.starts[i];
    if (!gave_up(start) || in_an_evaluation(start)) continue;
    const int64_t trained = last_committed(start);
    const int64_t saved = start.published.empty() ? start.resumed_at : start.published.rbegin()->first;
    if (saved < trained)
      findings.push_back("start " + std::to_string(i + 1) + " ran out of memory after step " +
                         std::to_string(trained) + ", and saved what was trained until step " +
                         std::to_string(saved) + " only: " + start.end_text());
  }
}

}  // namespace tutti

#include <algorithm>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// The step under way may have its verdict already, and the request passes through two actors, one of which
// may be at a checkpoint.
constexpr int64_t kStepsToStop = 4;

}  // namespace

void check_stops(const RunSeen& run, Findings& findings) {
  for (std::size_t i = 0; i < run.starts.size(); ++i) {
    const StartSeen& start = run.starts[i];
    const int64_t last = start.last_committed();
    for (const StopSeen& stop : start.stops) {
      const int64_t asked = std::max(stop.step, start.resumed_at);
      if (last <= asked + kStepsToStop) continue;
      findings.push_back("in start " + std::to_string(i + 1) + " rank " + std::to_string(stop.rank) +
                         " was asked to stop in step " + std::to_string(asked) + ", and step " +
                         std::to_string(last) + " was still done");
    }
  }
}

}  // namespace tutti

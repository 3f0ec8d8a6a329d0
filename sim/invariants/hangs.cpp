#include <algorithm>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// On top of hang_timeout: until heartbeats tell that all ranks wait, and until mpirun has ended those that
// the news of it does not reach.
constexpr double kToEndS = 5;

}  // namespace

void check_hangs(const RunFacts& facts, const RunSeen& run, Findings& findings) {
  using enum FaultKind;
  for (std::size_t i = 0; i < run.starts.size(); ++i) {
    const StartSeen& start = run.starts[i];
    const double most =
        seconds(facts.hang_timeout) + kToEndS + lateness_s(facts, start, {kSlow, kDelay, kReorder});
    for (const HangSeen& hang : start.hangs) {
      const double stood_s = seconds(std::min(hang.until, start.took) - hang.began);
      if (stood_s <= most) continue;
      findings.push_back("in start " + std::to_string(i + 1) + " a collective hung for " +
                         std::to_string(stood_s) + " s, and the ranks were to give it up within " +
                         std::to_string(most) + " s");
    }
  }
}

}  // namespace tutti

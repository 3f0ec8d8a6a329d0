#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// The first step that does not end on the bits it should.
void check_steps(const StartSeen& expected, const StartSeen& start, Findings& findings) {
  for (std::size_t rank = 0; rank < start.steps.size(); ++rank) {
    for (const auto& [step, seen] : start.steps[rank]) {
      if (seen.weights == 0) continue;
      const auto same = expected.steps[rank].find(step);
      if (same != expected.steps[rank].end() && same->second.weights == seen.weights) continue;
      findings.push_back("rank " + std::to_string(rank) + " ended step " + std::to_string(step) +
                         " on other bits than the run without faults");
      return;
    }
  }
}

}  // namespace

void check_bits(const RunFacts& facts, const RunSeen& run, Findings& findings) {
  for (const StartSeen& start : run.starts) check_steps(facts.fault_free.starts.front(), start, findings);
  const bool ended = !run.starts.empty() && run.starts.back().well() && !run.starts.back().stopped();
  if (ended && run.weights != facts.fault_free.weights)
    findings.push_back("the run's last checkpoint holds other bits than that of the run without faults");
}

}  // namespace tutti

#include <algorithm>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// Beyond hang_timeout: until heartbeats show that all ranks wait, and mpirun has killed ranks that are not
// informed of the end.
constexpr double kToEndS = 5;

}  // namespace

void check_waiting(const SimRun& run, Findings& findings) {
  const SimAttempt& last = run.attempts.back();  // a stuck attempt is the last
  if (!last.blocked_senders.empty())
    findings.push_back("in " + last.name() + " full mailboxes block each other: " + last.blocked_senders);
  else if (!last.stuck.empty())
    findings.push_back(last.name() + " never ended: " + last.stuck);
}

void check_hangs(const Reference& reference, const SimRun& run, Findings& findings) {
  const auto ends = [](const FaultRule& rule) { return rule.kind != FaultKind::kHang && !rule.endless(); };
  for (const SimAttempt& attempt : run.attempts) {
    const double most =
        seconds(reference.job.settings.train.hang_timeout) + kToEndS + lateness_s(reference, attempt, ends);
    for (const SimHang& hang : attempt.hangs) {
      const double hung_s = seconds(std::min(hang.until, attempt.took) - hang.began);
      if (hung_s <= most) continue;
      findings.push_back("in " + attempt.name() + " a collective hung for " + std::to_string(hung_s) +
                         " s, and the ranks were to give it up within " + std::to_string(most) + " s");
    }
  }
}

}  // namespace tutti

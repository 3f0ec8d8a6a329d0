#include <algorithm>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// The current step may already have its verdict, and the request passes through two actors, one of which may
// be busy with a checkpoint.
constexpr int64_t kStepsToStop = 4;

}  // namespace

void check_progress(const SimRun& run, Findings& findings) {
  int64_t published = 0;  // the newest step with an undamaged checkpoint
  for (const SimAttempt& attempt : run.attempts) {
    if (attempt.resumed_at >= 0 && attempt.resumed_at < published)
      findings.push_back(attempt.name() + " went back to step " + std::to_string(attempt.resumed_at) +
                         ", though the checkpoint of step " + std::to_string(published) + " was published");
    if (attempt.damages_files()) {
      published = 0;  // retention may have removed good checkpoints in favour of a damaged one
      continue;
    }
    for (const auto& [step, bits] : attempt.published) published = std::max(published, step);
  }
  if (run.attempts.empty()) return;
  const SimAttempt& last = run.attempts.back();
  if (last.stuck.empty() && (!last.well() || last.stopped()))
    findings.push_back("the run did not come to its end though there were no faults any more: " +
                       last.end_text());
}

void check_liveness(const SimRun& run, Findings& findings) {
  for (const SimAttempt& attempt : run.attempts) {
    for (const SimStall& stall : attempt.stalls)
      findings.push_back("in " + attempt.name() + " nothing followed step " + std::to_string(stall.step) +
                         " though all was well from " +
                         std::to_string(seconds(stall.since.time_since_epoch())) + " s on; rank " +
                         std::to_string(stall.rank) + " stood still the longest, since " + stall.last.text());
  }
}

void check_stops(const SimRun& run, Findings& findings) {
  for (const SimAttempt& attempt : run.attempts) {
    const int64_t last = attempt.last_committed();
    for (const SimStop& stop : attempt.stops) {
      const int64_t asked = std::max(stop.step, attempt.resumed_at);
      if (last <= asked + kStepsToStop) continue;
      findings.push_back("in " + attempt.name() + " rank " + std::to_string(stop.rank) +
                         " was asked to stop in step " + std::to_string(asked) + ", and step " +
                         std::to_string(last) + " was still done");
    }
  }
}

}  // namespace tutti

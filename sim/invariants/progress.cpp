#include <algorithm>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// Heartbeats that are late by this much make rank 0 give a rank up when it is told to stop.
constexpr double kSilentS = 1;

// Whether memory ran out in a step that could not be done in smaller parts.
bool had_no_smaller_parts(const RunFacts& facts, const StartSeen& start) {
  const bool automatic = facts.job.recipe.at("train").at("grad_accum").is_text();
  const Sampler sampler = facts.job.train_sampler(0);
  for (const auto& rank : start.steps)
    for (const auto& [step, seen] : rank) {
      const int64_t samples = sampler.global_samples((step - 1) % sampler.batches());
      const int64_t most = automatic ? (samples + facts.job.world - 1) / facts.job.world : 1;
      if (seen.void_microbatches >= most) return true;
    }
  return false;
}

// Whether what happened in a start may end it, so that it is to be started again.
bool excused(const RunFacts& facts, const StartSeen& start) {
  const bool stopping = start.happened("sigterm");
  for (const FaultRule& rule : facts.plan.rules) {
    if (!start.happened(rule.name)) continue;
    const double limit = stopping ? kSilentS : seconds(facts.hang_timeout) / 2;
    switch (rule.kind) {
      case FaultKind::kDeath:
      case FaultKind::kPowerLoss:
        return true;
      case FaultKind::kOutOfMemory:
        if (had_no_smaller_parts(facts, start)) return true;
        break;
      case FaultKind::kHang:
        if (rule.seconds == 0 || rule.seconds >= limit) return true;
        break;
      case FaultKind::kSlow:
      case FaultKind::kDelay:
      case FaultKind::kReorder:
        if (rule.seconds * static_cast<double>(rule.count) >= limit) return true;
        break;
      default:
        break;
    }
  }
  return false;
}

// What goes wrong with writes may keep a start from beginning (one shows whether the ranks share the folder),
// and costs it its last checkpoint; it never stops training.
bool disk_excuses(const StartSeen& start) {
  if (!start.happened("disk_full") && !start.happened("write_error") && !start.damages()) return false;
  const bool trained = !start.steps.front().empty();
  return !trained || std::all_of(start.ends.begin(), start.ends.end(), [](const RankEnd& end) {
    return end.reason.empty() && !end.killed && (end.exit_code == 0 || end.exit_code == 3);
  });
}

std::string named(std::size_t start) { return "start " + std::to_string(start + 1); }

void check_end(const RunFacts& facts, const StartSeen& start, std::size_t number, Findings& findings) {
  if (!start.stuck.empty()) return;  // others' to tell
  if (!start.well() && !excused(facts, start) && !disk_excuses(start))
    findings.push_back(named(number) + " ended badly, and nothing in it had to end it: " + start.end_text());
  if (start.well() && start.stopped() && !start.happened("sigterm") && !excused(facts, start))
    findings.push_back(named(number) + " stopped without being told to");
}

}  // namespace

void check_progress(const RunFacts& facts, const RunSeen& run, Findings& findings) {
  int64_t published = 0;  // the newest that nothing has damaged
  for (std::size_t i = 0; i < run.starts.size(); ++i) {
    const StartSeen& start = run.starts[i];
    check_end(facts, start, i, findings);
    if (start.resumed_at >= 0 && start.resumed_at < published)
      findings.push_back(named(i) + " went back to step " + std::to_string(start.resumed_at) +
                         ", though the checkpoint of step " + std::to_string(published) + " was published");
    if (start.damages()) published = 0;  // good ones may have made room for one that is not
    if (start.damages()) continue;
    for (const int64_t step : start.published) published = std::max(published, step);
  }
  if (run.starts.empty()) return;
  const StartSeen& last = run.starts.back();
  if (last.stuck.empty() && (!last.well() || last.stopped()))
    findings.push_back("the run did not come to its end though there were no faults any more: " +
                       last.end_text());
}

}  // namespace tutti

#include <algorithm>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

constexpr double kBetweenHeartbeatsS = 1;  // with the time that a Supervisor needs to react
// The least delay of a heartbeat that lets a Supervisor which was asked to stop give up the rank: it
// tolerates 1.5 s of silence, and 0.6 s pass without any fault.
constexpr double kLateForAStopS = 0.8;

// True if memory ran out in a step that had its largest number of microbatches.
bool had_most_microbatches(const Reference& reference, const SimAttempt& attempt) {
  const bool automatic = reference.job.settings.train.accumulation.automatic();
  const Sampler sampler = reference.job.train_sampler(0);
  for (const auto& rank : attempt.steps)
    for (const auto& [step, seen] : rank) {
      const int64_t samples = sampler.global_samples((step - 1) % sampler.batches());
      const int64_t most = automatic ? largest_part(samples, reference.job.data_world()) : 1;
      if (seen.aborted_microbatches >= most) return true;
    }
  return false;
}

// True if the plan let memory run out; the recipe's memory budget does not count.
bool memory_ran_out(const Reference& reference, const SimAttempt& attempt) {
  return std::ranges::any_of(reference.plan.rules, [&](const FaultRule& rule) {
    return rule.kind == FaultKind::kOutOfMemory && attempt.had_fault(rule);
  });
}

bool writes_went_wrong(const SimAttempt& attempt) {
  return attempt.had_fault(FaultKind::kDiskFull) || attempt.had_fault(FaultKind::kWriteError) ||
         attempt.damages_files();
}

// After one rank failed, mpirun asks the others to stop and then kills them.
bool follows_from_another(const RankEnd& end) {
  return end.kind == EndKind::kKilled || end.kind == EndKind::kSilence || end.kind == EndKind::kLostRank;
}

// True if a fault of the attempt explains this end of a rank.
bool is_explained(const Reference& reference, const SimAttempt& attempt, const RankEnd& end) {
  const double timeout = seconds(reference.job.settings.train.hang_timeout);
  switch (end.kind) {
    case EndKind::kNoLastCheckpoint:
      return writes_went_wrong(attempt);
    case EndKind::kOutOfMemoryInEvaluation:
      return memory_ran_out(reference, attempt);
    case EndKind::kOutOfMemoryInStep:
      return memory_ran_out(reference, attempt) && had_most_microbatches(reference, attempt);
    case EndKind::kHang:
      return lateness_s(reference, attempt, [](const FaultRule&) { return true; }) >=
             std::max(timeout - kBetweenHeartbeatsS, timeout / 2);
    case EndKind::kSilence:
      return attempt.asked_to_stop && lateness_s(reference, attempt, [](const FaultRule& rule) {
                                        return rule.delays_messages();
                                      }) >= kLateForAStopS;
    default:
      return false;
  }
}

// True if any end is excused. A failed write excuses an end before the first step, when a file is written to
// test that the ranks share the folder; later it may only cost the last checkpoint.
bool is_any_end_excused(const SimAttempt& attempt) {
  if (attempt.had_fault(FaultKind::kDeath) || attempt.had_fault(FaultKind::kPowerLoss)) return true;
  return writes_went_wrong(attempt) && attempt.steps.front().empty();
}

// False if lack of memory ended the ranks: all then end by themselves, unless a fault delays one.
bool may_be_killed(const Reference& reference, const SimAttempt& attempt) {
  const bool lacked_memory = std::all_of(attempt.ends.begin(), attempt.ends.end(), [](const RankEnd& end) {
    return end.kind == EndKind::kKilled || end.well() || gave_up_for_memory(end);
  });
  return !lacked_memory || lateness_s(reference, attempt, [](const FaultRule&) { return true; }) > 0;
}

bool are_ends_explained(const Reference& reference, const SimAttempt& attempt) {
  if (is_any_end_excused(attempt)) return true;
  bool any = false;
  for (const RankEnd& end : attempt.ends) {
    if (end.well()) continue;
    const bool explained = is_explained(reference, attempt, end);
    if (!explained && !follows_from_another(end)) return false;
    if (end.kind == EndKind::kKilled && !may_be_killed(reference, attempt)) return false;
    any = any || explained;
  }
  return any;
}

}  // namespace

double lateness_s(const Reference& reference, const SimAttempt& attempt, bool (*counts)(const FaultRule&)) {
  double late = 0;
  for (const FaultRule& rule : reference.plan.rules) {
    // Any late packet of a reorder rule counts here, while had_fault() counts overtaken packets.
    const bool active =
        rule.kind == FaultKind::kReorder ? attempt.faults.contains(rule.label) : attempt.had_fault(rule);
    if (active && counts(rule)) late += rule.lateness_s();
  }
  return late;
}

void check_ends(const Reference& reference, const SimRun& run, Findings& findings) {
  for (const SimAttempt& attempt : run.attempts) {
    if (!attempt.stuck.empty()) continue;  // reported by check_waiting
    if (!attempt.well() && !are_ends_explained(reference, attempt))
      findings.push_back(attempt.name() + " ended badly, and no fault explains it: " + attempt.end_text());
    if (attempt.well() && attempt.stopped() && !attempt.asked_to_stop)
      findings.push_back(attempt.name() + " stopped, and no rank was asked to");
  }
}

}  // namespace tutti

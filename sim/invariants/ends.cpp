#include <algorithm>
#include <limits>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

constexpr double kBetweenHeartbeatsS = 1;  // and what else a Supervisor takes to see what is so
// How late a heartbeat is at least, whose rank is given up by one that is told to stop: that one bears 1.5 s
// of silence, of which 0.6 pass anyway.
constexpr double kLateForAStopS = 0.8;
constexpr int kNoLastCheckpoint = 3;  // exit code

// Whether memory ran out in a step that could not be done in smaller parts.
bool had_no_smaller_parts(const RunFacts& facts, const StartSeen& start) {
  const bool automatic = facts.job.recipe.at("train").at("grad_accum").is_text();
  const Sampler sampler = facts.job.train_sampler(0);
  for (const auto& rank : start.steps)
    for (const auto& [step, seen] : rank) {
      const int64_t samples = sampler.global_samples((step - 1) % sampler.batches());
      const int64_t most = automatic ? largest_part(samples, facts.job.world) : 1;
      if (seen.aborted_microbatches >= most) return true;
    }
  return false;
}

// By the plan.
bool memory_ran_out(const RunFacts& facts, const StartSeen& start) {
  return std::ranges::any_of(facts.plan.rules, [&](const FaultRule& rule) {
    return rule.kind == FaultKind::kOutOfMemory && start.happened(rule);
  });
}

bool writes_went_wrong(const StartSeen& start) {
  return start.happened("disk_full") || start.happened("write_error") || start.damages();
}

// How a Supervisor says that a rank, or all of them, have stood still for hang_timeout.
bool speaks_of_hanging(const std::string& reason) {
  return reason.find(" hangs") != std::string::npos ||
         reason.find("has not been heard for") != std::string::npos;
}

bool speaks_of_silence(const std::string& reason) {
  return reason.find("is silent while rank") != std::string::npos;
}

// Where another rank has ended badly, mpirun asks those that are left to stop, and then kills them.
bool follows_from_another(const RankEnd& end) {
  return end.killed || speaks_of_silence(end.reason) ||
         end.reason.find("is gone: its process ended") != std::string::npos;
}

// An evaluation that could not.
bool speaks_of_an_evaluation(const std::string& reason) {
  return reason.find("evaluation '") != std::string::npos &&
         reason.find("with one sample at a time") != std::string::npos;
}

// Every rank says it itself, and is not waited for by the others.
bool speaks_of_memory(const std::string& reason) {
  return reason.find("ran out of memory") != std::string::npos;
}

// Whether what happened in the start ends a rank in this way, without another that has ended so.
bool had_to_end_so(const RunFacts& facts, const StartSeen& start, const RankEnd& end) {
  using enum FaultKind;
  if (end.killed) return false;
  if (end.reason.empty()) return end.exit_code == kNoLastCheckpoint && writes_went_wrong(start);
  if (speaks_of_an_evaluation(end.reason)) return memory_ran_out(facts, start);
  if (speaks_of_memory(end.reason)) return memory_ran_out(facts, start) && had_no_smaller_parts(facts, start);
  const double timeout = seconds(facts.hang_timeout);
  if (speaks_of_hanging(end.reason))
    return lateness_s(facts, start, {kSlow, kDelay, kReorder, kHang}) >=
           std::max(timeout - kBetweenHeartbeatsS, timeout / 2);
  if (speaks_of_silence(end.reason))
    return start.asked_to_stop && lateness_s(facts, start, {kDelay, kReorder}) >= kLateForAStopS;
  return false;
}

// What goes wrong with writes may keep a start from beginning: one shows whether the ranks share the folder.
// Later it costs a start its last checkpoint, and never stops training.
bool may_end_anyhow(const StartSeen& start) {
  if (start.happened("death") || start.happened("power_loss")) return true;
  return writes_went_wrong(start) && start.steps.front().empty();
}

// All ranks end by themselves where memory ran out: who has to be killed hangs, unless something made it
// late.
bool may_be_killed(const RunFacts& facts, const StartSeen& start) {
  using enum FaultKind;
  const bool of_memory = std::all_of(start.ends.begin(), start.ends.end(), [](const RankEnd& end) {
    return end.killed || end.well() || speaks_of_memory(end.reason) || speaks_of_an_evaluation(end.reason);
  });
  return !of_memory || lateness_s(facts, start, {kSlow, kDelay, kReorder, kHang}) > 0;
}

bool had_to_end(const RunFacts& facts, const StartSeen& start) {
  if (may_end_anyhow(start)) return true;
  bool any = false;
  for (const RankEnd& end : start.ends) {
    if (end.well()) continue;
    const bool had_to = had_to_end_so(facts, start, end);
    if (!had_to && !follows_from_another(end)) return false;
    if (end.killed && !may_be_killed(facts, start)) return false;
    any = any || had_to;
  }
  return any;
}

}  // namespace

double lateness_s(const RunFacts& facts, const StartSeen& start, std::initializer_list<FaultKind> kinds) {
  double late = 0;
  for (const FaultRule& rule : facts.plan.rules) {
    if (std::find(kinds.begin(), kinds.end(), rule.kind) == kinds.end()) continue;
    // A packet that is late is a reorder only where it was overtaken.
    const bool struck =
        rule.kind == FaultKind::kHang ? start.happened(rule) : start.faults.contains(rule.label);
    const bool endless = rule.kind == FaultKind::kHang && rule.seconds == 0;
    if (struck) late += endless ? std::numeric_limits<double>::infinity() : rule.seconds;
  }
  return late;
}

void check_ends(const RunFacts& facts, const RunSeen& run, Findings& findings) {
  for (std::size_t i = 0; i < run.starts.size(); ++i) {
    const StartSeen& start = run.starts[i];
    const std::string named = "start " + std::to_string(i + 1);
    if (!start.stuck.empty()) continue;  // others' to tell
    if (!start.well() && !had_to_end(facts, start))
      findings.push_back(named + " ended badly, and nothing in it had to end it: " + start.end_text());
    if (start.well() && start.stopped() && !start.asked_to_stop)
      findings.push_back(named + " stopped without being told to");
  }
}

}  // namespace tutti

#include "sim/faults/scheduled_faults.h"

namespace tutti {
namespace {

constexpr uint64_t kDiskCalls = 60;  // about as many as two checkpoints make

}  // namespace

ScheduledFaults::ScheduledFaults(const FaultPlan& plan, const RandomKey& draw, int ranks, int64_t steps) {
  for (std::size_t i = 0; i < plan.rules.size(); ++i) {
    const FaultRule& rule = plan.rules[i];
    const auto phases = fault_phases(rule.kind);
    const RandomKey key = draw.fold_in(i);
    if (key.uniform(0) >= rule.probability) continue;
    const int rank = rule.rank.value_or(static_cast<int>(key.below(ranks, 1)));
    const int64_t step = rule.step.value_or(1 + static_cast<int64_t>(key.below(steps, 2)));
    const FaultPhase phase = rule.phase ? *rule.phase : phases[key.below(phases.size(), 3)];
    const uint64_t choices = phase == FaultPhase::kDisk ? kDiskCalls : 1;
    const auto skipped = static_cast<int64_t>(key.below(choices, 4));
    scheduled_.push_back({&rule, rank, phase == FaultPhase::kStart ? 0 : step, phase, skipped});
  }
}

std::vector<const FaultRule*> ScheduledFaults::due(int rank, int64_t step, FaultPhase phase) {
  std::vector<const FaultRule*> rules;
  std::erase_if(scheduled_, [&](Scheduled& scheduled) {
    if (scheduled.rank != rank || step < scheduled.step || scheduled.phase != phase ||
        scheduled.skipped-- > 0)
      return false;
    rules.push_back(scheduled.rule);
    return true;
  });
  return rules;
}

}  // namespace tutti

#include "sim/faults/scheduled_faults.h"

namespace tutti {
namespace {

constexpr uint64_t kDiskCalls = 60;  // about those of two checkpoints

}  // namespace

ScheduledFaults::ScheduledFaults(const FaultPlan& plan, const RandomKey& draw, int ranks, int64_t steps) {
  for (std::size_t i = 0; i < plan.rules.size(); ++i) {
    const FaultRule& rule = plan.rules[i];
    const auto phases = fault_phases(rule.kind);
    const RandomKey own = draw.fold_in(i);
    if (own.uniform(0) >= rule.probability) continue;
    const int rank = rule.rank.value_or(static_cast<int>(own.below(ranks, 1)));
    const int64_t step = rule.step.value_or(1 + static_cast<int64_t>(own.below(steps, 2)));
    const std::string phase = rule.phase != "any" ? rule.phase : phases[own.below(phases.size(), 3)];
    const uint64_t among = phase == "disk" ? kDiskCalls : 1;
    const auto passes = static_cast<int64_t>(own.below(among, 4));
    scheduled_.push_back({&rule, rank, phase == "start" ? 0 : step, phase, passes});
  }
}

std::vector<const FaultRule*> ScheduledFaults::due(int rank, int64_t step, const std::string& phase) {
  std::vector<const FaultRule*> struck;
  std::erase_if(scheduled_, [&](Scheduled& scheduled) {
    if (scheduled.rank != rank || step < scheduled.step || scheduled.phase != phase || scheduled.passes-- > 0)
      return false;
    struck.push_back(scheduled.rule);
    return true;
  });
  return struck;
}

}  // namespace tutti

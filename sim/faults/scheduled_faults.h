#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/random.h"
#include "sim/faults/fault_plan.h"

namespace tutti {

// The faults of one attempt, with the drawn ranks, steps and phases.
class ScheduledFaults {
 public:
  // Steps are drawn from 1 to `steps`, the length of a whole run.
  ScheduledFaults(const FaultPlan& plan, const RandomKey& draw, int ranks, int64_t steps);
  ScheduledFaults() = default;

  // The rules due when a rank enters this phase, in the scheduled step or later. Each rule once.
  std::vector<const FaultRule*> due(int rank, int64_t step, FaultPhase phase);

 private:
  struct Scheduled {
    const FaultRule* rule;
    int rank;
    int64_t step;
    FaultPhase phase;
    int64_t skipped;  // times that the rank enters the phase before the fault
  };
  std::vector<Scheduled> scheduled_;
};

// The number of effects of a fault.
struct FaultCount {
  std::optional<FaultKind> kind = {};  // none: the recipe's memory budget
  int64_t count = 0;
};
using FaultCounts = std::map<std::string, FaultCount>;  // by FaultRule::label

}  // namespace tutti

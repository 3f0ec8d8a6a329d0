#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/random.h"
#include "sim/faults/fault_plan.h"

namespace tutti {

// The faults of one start of the job, where and when as drawn.
class ScheduledFaults {
 public:
  // `steps`: of a whole run; drawn steps are among them.
  ScheduledFaults(const FaultPlan& plan, const RandomKey& draw, int ranks, int64_t steps);
  ScheduledFaults() = default;

  // Those that now strike: a rank has come to this phase of this step, or is past the step. Each once.
  std::vector<const FaultRule*> due(int rank, int64_t step, FaultPhase phase);

 private:
  struct Scheduled {
    const FaultRule* rule;
    int rank;
    int64_t step;
    FaultPhase phase;
    int64_t passes;  // of the phase, before it strikes
  };
  std::vector<Scheduled> scheduled_;
};

// How often a fault really struck.
struct FaultCount {
  std::optional<FaultKind> kind = {};  // none: no plan's
  int64_t count = 0;
};
using FaultCounts = std::map<std::string, FaultCount>;  // by FaultRule::label

}  // namespace tutti

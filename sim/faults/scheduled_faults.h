#pragma once

#include <map>
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
  std::vector<const FaultRule*> due(int rank, int64_t step, const std::string& phase);

 private:
  struct Scheduled {
    const FaultRule* rule;
    int rank;
    int64_t step;
    std::string phase;
    int64_t passes;  // of the phase, before it strikes
  };
  std::vector<Scheduled> scheduled_;
};

// How often each fault really happened, by FaultRule::label.
using FaultCounts = std::map<std::string, int64_t>;

}  // namespace tutti

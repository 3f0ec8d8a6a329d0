#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/random.h"
#include "sim/faults/fault_plan.h"

namespace tutti {

// The faults of one start of the job, where and when as drawn.
class ArmedFaults {
 public:
  // `steps`: of a whole run; drawn steps are among them.
  ArmedFaults(const FaultPlan& plan, const Draw& draw, int ranks, int64_t steps);
  ArmedFaults() = default;

  // Those that now strike: a rank has come to this phase of this step, or is past the step. Each once.
  std::vector<const FaultRule*> due(int rank, int64_t step, const std::string& phase);

 private:
  struct Armed {
    const FaultRule* rule;
    int rank;
    int64_t step;
    std::string phase;
    int64_t passes;  // of the phase, before it strikes
  };
  std::vector<Armed> armed_;
};

// How often each fault really happened, by FaultRule::label.
using FaultCounts = std::map<std::string, int64_t>;

}  // namespace tutti

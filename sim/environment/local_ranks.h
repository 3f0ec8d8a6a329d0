#pragma once

#include <vector>

#include "actors/rank.h"
#include "sim/environment/sim_scheduler.h"
#include "tensors/process_state.h"

namespace tutti {

// Ranks that share this process, under the simulator's scheduler: each has its collectives, its control
// messages and a slot of the meter. What else its environment is, the owner changes before adding the rank.
class LocalRanks {
 public:
  // `scheduling.on_switch` is this class's own.
  explicit LocalRanks(int size, SimScheduler::Options scheduling = {});

  SimScheduler& scheduler() { return scheduler_; }
  std::vector<RankEnvironment>& environments() { return environments_; }  // by rank

 private:
  ProcessStateSwitch states_;
  std::vector<RankEnvironment> environments_;
  SimScheduler scheduler_;
};

}  // namespace tutti

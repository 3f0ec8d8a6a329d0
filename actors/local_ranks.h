#pragma once

#include <vector>

#include "actors/rank.h"
#include "runtime/actor/token_scheduler.h"
#include "tensors/device.h"
#include "tensors/process_state.h"

namespace tutti {

// The environments of several ranks in this process, under the simulator's scheduler: with collectives,
// control network and slot of the memory meter. The owner sets the other fields before adding a rank.
class LocalRanks {
 public:
  // `scheduling.on_switch` is overwritten.
  explicit LocalRanks(const Job& job, TokenScheduler::Options scheduling = {});
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  TokenScheduler& scheduler() { return scheduler_; }
  std::vector<RankEnvironment>& environments() { return environments_; }  // by rank

 private:
  std::vector<Device> devices_;  // by rank
  ProcessStateSwitch states_;
  std::vector<RankEnvironment> environments_;
  TokenScheduler scheduler_;
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/faults/fault_plan.h"

namespace tutti {

// Lets allocations of one rank fail in forward, backward or evaluation. Allocations are counted for each of
// the three phases alone, across microbatches or evaluated batches.
class FailingMemory {
 public:
  explicit FailingMemory(int slot) : slot_(slot) {}  // the rank's slot of the meter

  // The rank enters this phase: kMicrobatch (forward), kBackward or kEvaluation.
  void enter(FaultPhase phase);
  FaultPhase phase() const { return phase_; }
  // Fails the phase's allocation of this ordinal, counted from 1 from now on; if another failure has that
  // ordinal, the next free ordinal. `label` names the fault.
  void fail(FaultPhase phase, int64_t ordinal, const std::string& label = "");
  // The labels of the failures since the last call.
  std::vector<std::string> failed();

 private:
  struct Failure {
    FaultPhase phase;
    int64_t ordinal;  // of the allocation, counted from the last update()
    std::string label;
  };
  void update();
  void schedule();

  int slot_;
  FaultPhase phase_ = FaultPhase::kMicrobatch;
  std::vector<Failure> failures_;
  int64_t allocations_ = 0;  // of the rank's scopes at the last update()
  std::vector<std::string> failed_;
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/faults/fault_plan.h"

namespace tutti {

// Makes allocations of one rank's forwards, backwards or evaluations fail. Each is counted in its own of the
// three, over as many microbatches or evaluated batches as it takes.
class FailingMemory {
 public:
  explicit FailingMemory(int slot) : slot_(slot) {}  // of the meter

  // The rank continues in this phase: kMicrobatch (a forward), kBackward or kEvaluation.
  void enter(FaultPhase phase);
  FaultPhase phase() const { return phase_; }
  // From now on the phase's allocation of this ordinal (from 1) fails, or the next that no other one takes.
  // `label`: whose doing it is.
  void fail(FaultPhase phase, int64_t ordinal, const std::string& label = "");
  // The labels of those that have failed since this was last asked.
  std::vector<std::string> failed();

 private:
  struct Failure {
    FaultPhase phase;
    int64_t left;  // allocations of the phase, itself included
    std::string label;
  };
  void settle();
  void arm();

  int slot_;
  FaultPhase phase_ = FaultPhase::kMicrobatch;
  std::vector<Failure> failures_;
  int64_t asked_ = 0;  // allocations of the rank's scopes, when it was last settled
  std::vector<std::string> failed_;
};

}  // namespace tutti

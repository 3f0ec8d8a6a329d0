#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

// Makes allocations of one rank's forwards, backwards or evaluations fail. Each is counted in its own of the
// three, over as many microbatches or evaluated batches as it takes.
class FailingMemory {
 public:
  // Phases, as a fault plan names them: a rank is in one of them.
  static constexpr const char* kForward = "microbatch";
  static constexpr const char* kBackward = "backward";
  static constexpr const char* kEvaluation = "evaluation";

  explicit FailingMemory(int slot) : slot_(slot) {}  // of the meter

  // The rank goes on in this phase.
  void enter(const std::string& phase);
  const std::string& phase() const { return phase_; }
  // From now on the phase's allocation of this ordinal (from 1) fails, or the next that no other one takes.
  // `label`: whose doing it is.
  void fail(const std::string& phase, int64_t ordinal, const std::string& label = "");
  // The labels of those that have failed since this was last asked.
  std::vector<std::string> failed();

 private:
  struct Failure {
    std::string phase;
    int64_t left;  // allocations of the phase, itself included
    std::string label;
  };
  void settle();
  void arm();

  int slot_;
  std::string phase_ = kForward;
  std::vector<Failure> failures_;
  int64_t asked_ = 0;  // allocations of the rank's scopes, when it was last settled
  std::vector<std::string> failed_;
};

}  // namespace tutti

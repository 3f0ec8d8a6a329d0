#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

// Makes allocations of one rank's forwards or backwards fail. Each is counted in its own of the two, over as
// many microbatches as it takes.
class ScarceMemory {
 public:
  // Phases, as a fault plan names them: a rank is in one of the two.
  static constexpr const char* kForward = "microbatch";
  static constexpr const char* kBackward = "backward";

  explicit ScarceMemory(int slot) : slot_(slot) {}  // of the meter

  // The rank goes on in this phase.
  void enter(const std::string& phase);
  // From now on the phase's allocation of this ordinal (from 1) fails, or the next that no other one takes.
  void fail(const std::string& phase, int64_t ordinal);
  // How many have failed since this was last asked.
  int64_t failed();

 private:
  struct Failure {
    std::string phase;
    int64_t left;  // allocations of the phase, itself included
  };
  void settle();
  void arm();

  int slot_;
  std::string phase_ = kForward;
  std::vector<Failure> failures_;
  int64_t asked_ = 0;  // allocations of the rank's scopes, when it was last settled
  int64_t failed_ = 0;
};

}  // namespace tutti

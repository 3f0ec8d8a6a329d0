#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/recorder.h"
#include "tensors/meter.h"

namespace tutti {

// An attempt at work within MemoryScopes of a rank, which may run out of memory; from its construction to
// `end`. In a replay it does so where it once did, at the same allocation, and nowhere else.
class MemoryAttempt {
 public:
  MemoryAttempt(Recorder& recorder, int memory_slot);

  // `seen`: how it ran out, where it did. Why it is aborted, which is kept for a replay.
  std::optional<FailedAllocation> end(std::optional<FailedAllocation> seen);

  // Runs the work in a scope of its own. What it ran out with, in a line; nothing where memory sufficed.
  std::optional<std::string> run(const std::function<void()>& work);

 private:
  Recorder& recorder_;
  int memory_slot_;
  std::optional<double> recorded_;
};

}  // namespace tutti

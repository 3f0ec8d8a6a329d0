#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "runtime/recorder.h"
#include "tensors/memory/meter.h"

namespace tutti {

// Records whether work within MemoryScopes of a rank runs out of memory, from construction to `end`. A replay
// runs out of memory at the recorded allocation, or at the recorded place if that is not known, and nowhere
// else.
class MemoryAttempt {
 public:
  MemoryAttempt(Recorder& recorder, int memory_slot);

  // `failure`: the failed allocation, if any. Records and returns the failure that aborts the attempt.
  std::optional<FailedAllocation> end(std::optional<FailedAllocation> failure);

  // Runs the work in a MemoryScope and ends the attempt. Returns the error on one line, or nullopt.
  std::optional<std::string> run(const std::function<void()>& work);

 private:
  Recorder& recorder_;
  int memory_slot_;
  std::optional<double> recorded_;
};

// The failed allocation behind a lack of memory within the scope; if the meter saw none, the error's words.
FailedAllocation failure_of(const std::exception& error, const MemoryScope& scope);

}  // namespace tutti

#include "tensors/memory_attempt.h"

#include <c10/util/Exception.h>

#include <vector>

#include "tensors/torch_error.h"

namespace tutti {

MemoryAttempt::MemoryAttempt(Recorder& recorder, int memory_slot)
    : recorder_(recorder),
      memory_slot_(memory_slot),
      recorded_(recorder.next_input(RecordedInput::kFailedAllocation)) {
  if (!recorded_) return;
  const auto ordinal = static_cast<int64_t>(*recorded_);
  Meter::set_budget(memory_slot_, 0);
  Meter::fail_at(memory_slot_, ordinal > 0 ? std::vector{ordinal} : std::vector<int64_t>());
}

// The place of a recorded error that the meter did not throw is unknown: a replay fails at the end.
std::optional<FailedAllocation> MemoryAttempt::end(std::optional<FailedAllocation> failure) {
  if (recorded_ == FailedAllocation::kNotSeen && !failure)
    failure = FailedAllocation{.ordinal = FailedAllocation::kNotSeen};
  recorder_.input(RecordedInput::kFailedAllocation, failure ? static_cast<double>(failure->ordinal) : 0.0);
  return failure;
}

std::optional<std::string> MemoryAttempt::run(const std::function<void()>& work) {
  std::optional<FailedAllocation> failure;
  std::string what = "as in the recording";
  {
    const MemoryScope scope(memory_slot_);
    try {
      work();
    } catch (const c10::OutOfMemoryError& error) {
      failure = scope.failure().value_or(FailedAllocation{.ordinal = FailedAllocation::kNotSeen});
      what = one_line(error);
    }
  }
  return end(failure) ? std::optional(what) : std::nullopt;
}

}  // namespace tutti

#include "tensors/memory_attempt.h"

#include <vector>

#include "tensors/out_of_memory.h"
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

FailedAllocation failure_of(const std::exception& error, const MemoryScope& scope) {
  if (scope.failure()) return *scope.failure();
  return {.ordinal = FailedAllocation::kNotSeen, .words = reason_of_lack(own_words(error))};
}

std::optional<std::string> MemoryAttempt::run(const std::function<void()>& work) {
  std::optional<FailedAllocation> failure;
  std::string what = "as in the recording";
  {
    const MemoryScope scope(memory_slot_);
    try {
      work();
    } catch (const std::exception& error) {
      if (!is_lack_of_memory(error)) throw;
      failure = failure_of(error, scope);
      what = one_line(error);
    }
  }
  return end(failure) ? std::optional(what) : std::nullopt;
}

}  // namespace tutti

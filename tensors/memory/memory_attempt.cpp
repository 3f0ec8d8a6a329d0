#include "tensors/memory/memory_attempt.h"

#include <vector>

#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti {

MemoryAttempt::MemoryAttempt(Recorder& recorder, int memory_slot)
    : recorder_(recorder),
      memory_slot_(memory_slot),
      recorded_(recorder.next_input(RecordedInput::kFailedAllocation)) {
  if (!recorded_) return;
  const auto ordinal = static_cast<int64_t>(*recorded_);
  Meter::set_budget(memory_slot_, 0);
  Meter::fail_at(memory_slot_, ordinal > 0 ? std::vector{ordinal} : std::vector<int64_t>());
  if (ordinal != FailedAllocation::kNotSeen) return;
  const auto place = recorder_.next_input(RecordedInput::kFailedPlace);
  Meter::fail_at_place(memory_slot_, place ? static_cast<int64_t>(*place) : 0);
}

// Older journals have no places: a replay fails at the end where the meter did not throw the error.
std::optional<FailedAllocation> MemoryAttempt::end(std::optional<FailedAllocation> failure) {
  if (recorded_ == FailedAllocation::kNotSeen && !failure)
    failure = FailedAllocation{.ordinal = FailedAllocation::kNotSeen};
  recorder_.input(RecordedInput::kFailedAllocation, failure ? static_cast<double>(failure->ordinal) : 0.0);
  if (failure) recorder_.input(RecordedInput::kFailedPlace, static_cast<double>(failure->place));
  return failure;
}

FailedAllocation failure_of(const std::exception& error, const MemoryScope& scope) {
  if (scope.failure()) return *scope.failure();
  return {.ordinal = FailedAllocation::kNotSeen,
          .place = scope.places(),
          .words = reason_of_lack(own_words(error))};
}

std::optional<std::string> MemoryAttempt::run(const std::function<void()>& work) {
  std::optional<FailedAllocation> failure;
  std::string what = "as in the recording";
  {
    const MemoryScope scope(memory_slot_);
    try {
      MemoryScope::pass_place();
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

#include "tensors/memory_attempt.h"

#include <c10/util/Exception.h>

#include <vector>

#include "tensors/torch_error.h"

namespace tutti {
namespace {

// Of an attempt; 0 = none, FailedAllocation::kNotSeen = another than the meter's.
constexpr const char* kFailedAllocation = "failed allocation";

}  // namespace

MemoryAttempt::MemoryAttempt(Recorder& recorder, int memory_slot)
    : recorder_(recorder), memory_slot_(memory_slot), recorded_(recorder.foretold(kFailedAllocation)) {
  if (!recorded_) return;
  const auto ordinal = static_cast<int64_t>(*recorded_);
  Meter::set_budget(memory_slot_, 0);
  Meter::fail_at(memory_slot_, ordinal > 0 ? std::vector{ordinal} : std::vector<int64_t>());
}

// Where in the attempt it was thrown may not be known: at its end, unless it comes again by itself.
std::optional<FailedAllocation> MemoryAttempt::end(std::optional<FailedAllocation> seen) {
  if (recorded_ == FailedAllocation::kNotSeen && !seen)
    seen = FailedAllocation{.ordinal = FailedAllocation::kNotSeen};
  recorder_.answer(kFailedAllocation, seen ? static_cast<double>(seen->ordinal) : 0.0);
  return seen;
}

std::optional<std::string> MemoryAttempt::run(const std::function<void()>& work) {
  std::optional<FailedAllocation> shortage;
  std::string what = "as when it was recorded";
  {
    const MemoryScope scope(memory_slot_);
    try {
      work();
    } catch (const c10::OutOfMemoryError& error) {
      shortage = scope.shortage().value_or(FailedAllocation{.ordinal = FailedAllocation::kNotSeen});
      what = one_line(error);
    }
  }
  return end(shortage) ? std::optional(what) : std::nullopt;
}

}  // namespace tutti

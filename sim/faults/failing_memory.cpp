#include "sim/faults/failing_memory.h"

#include <algorithm>
#include <utility>

#include "tensors/memory/meter.h"

namespace tutti {

void FailingMemory::enter(FaultPhase phase) {
  update();
  phase_ = phase;
  schedule();
}

void FailingMemory::fail(FaultPhase phase, int64_t ordinal, const std::string& label) {
  update();
  failures_.push_back({phase, ordinal, label});
  schedule();
}

std::vector<std::string> FailingMemory::failed() {
  update();
  return std::exchange(failed_, {});
}

void FailingMemory::update() {
  const int64_t total = Meter::scoped_allocations(slot_);
  const int64_t passed = total - std::exchange(allocations_, total);
  for (Failure& failure : failures_)
    if (failure.phase == phase_) failure.ordinal -= passed;
  for (const Failure& failure : failures_)
    if (failure.ordinal <= 0) failed_.push_back(failure.label);
  std::erase_if(failures_, [](const Failure& one) { return one.ordinal <= 0; });
}

void FailingMemory::schedule() {
  std::sort(failures_.begin(), failures_.end(),
            [](const Failure& a, const Failure& b) { return a.ordinal < b.ordinal; });
  std::vector<int64_t> ordinals;
  for (Failure& failure : failures_) {
    if (failure.phase != phase_) continue;
    if (!ordinals.empty()) failure.ordinal = std::max(failure.ordinal, ordinals.back() + 1);
    ordinals.push_back(failure.ordinal);
  }
  Meter::fail_at(slot_, ordinals);
}

}  // namespace tutti

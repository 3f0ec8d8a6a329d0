#include "sim/faults/failing_memory.h"

#include <algorithm>
#include <utility>

#include "tensors/meter.h"

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
  for (Failure& one : failures_)
    if (one.phase == phase_) one.ordinal -= passed;
  for (const Failure& one : failures_)
    if (one.ordinal <= 0) failed_.push_back(one.label);
  std::erase_if(failures_, [](const Failure& one) { return one.ordinal <= 0; });
}

void FailingMemory::schedule() {
  std::sort(failures_.begin(), failures_.end(),
            [](const Failure& a, const Failure& b) { return a.ordinal < b.ordinal; });
  std::vector<int64_t> ordinals;
  for (Failure& one : failures_) {
    if (one.phase != phase_) continue;
    if (!ordinals.empty()) one.ordinal = std::max(one.ordinal, ordinals.back() + 1);
    ordinals.push_back(one.ordinal);
  }
  Meter::fail_at(slot_, ordinals);
}

}  // namespace tutti

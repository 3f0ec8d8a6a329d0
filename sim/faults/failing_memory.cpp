#include "sim/faults/failing_memory.h"

#include <algorithm>
#include <utility>

#include "tensors/meter.h"

namespace tutti {

void FailingMemory::enter(const std::string& phase) {
  settle();
  phase_ = phase;
  arm();
}

void FailingMemory::fail(const std::string& phase, int64_t ordinal, const std::string& label) {
  settle();
  failures_.push_back({phase, ordinal, label});
  arm();
}

std::vector<std::string> FailingMemory::failed() {
  settle();
  return std::exchange(failed_, {});
}

void FailingMemory::settle() {
  const int64_t asked = Meter::scoped_allocations(slot_);
  const int64_t passed = asked - std::exchange(asked_, asked);
  for (Failure& one : failures_)
    if (one.phase == phase_) one.left -= passed;
  for (const Failure& one : failures_)
    if (one.left <= 0) failed_.push_back(one.label);
  std::erase_if(failures_, [](const Failure& one) { return one.left <= 0; });
}

void FailingMemory::arm() {
  std::sort(failures_.begin(), failures_.end(),
            [](const Failure& a, const Failure& b) { return a.left < b.left; });
  std::vector<int64_t> ordinals;
  for (Failure& one : failures_) {
    if (one.phase != phase_) continue;
    if (!ordinals.empty()) one.left = std::max(one.left, ordinals.back() + 1);
    ordinals.push_back(one.left);
  }
  Meter::fail_at(slot_, ordinals);
}

}  // namespace tutti

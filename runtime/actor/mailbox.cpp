#include "runtime/actor/mailbox.h"

#include <bit>
#include <utility>

#include "runtime/error.h"

namespace tutti {

Ring::Ring(int capacity)
    : capacity_(capacity), mask_(std::bit_ceil(capacity_) - 1), slots_(new Slot[mask_ + 1]) {
  TUTTI_ASSERT(capacity > 0, "a mailbox holds at least one message");
  for (uint64_t p = 0; p < capacity_; ++p) slots_[p].stamp.store(2 * p, std::memory_order_relaxed);
}

bool Ring::push(Envelope& envelope) {
  uint64_t p = tail_.load(std::memory_order_relaxed);
  while (true) {
    Slot& slot = slots_[p & mask_];
    const uint64_t stamp = slot.stamp.load(std::memory_order_acquire);
    if (stamp == 2 * p) {
      if (!tail_.compare_exchange_weak(p, p + 1, std::memory_order_relaxed)) continue;
      slot.envelope = std::move(envelope);
      slot.stamp.store(2 * p + 1, std::memory_order_release);
      return true;
    }
    if (stamp < 2 * p) return false;
    p = tail_.load(std::memory_order_relaxed);
  }
}

bool Ring::pop(Envelope& envelope) {
  if (empty()) return false;
  envelope = std::move(slots_[head_ & mask_].envelope);
  const uint64_t freed = head_++ + capacity_;
  slots_[freed & mask_].stamp.store(2 * freed, std::memory_order_release);
  return true;
}

bool Ring::empty() const {
  return slots_[head_ & mask_].stamp.load(std::memory_order_acquire) != 2 * head_ + 1;
}

uint64_t Ring::size() const { return tail_.load(std::memory_order_relaxed) - head_; }

bool Mailbox::push(Envelope& envelope) {
  return envelope.message.reserved() ? reserved_.push(envelope) : requests_.push(envelope);
}

}  // namespace tutti

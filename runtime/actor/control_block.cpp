#include "runtime/actor/control_block.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

namespace {

using std::chrono::microseconds;

constexpr Nanoseconds kShortWait = microseconds(100);  // two wake-ups across cores; longer waits sleep
constexpr Nanoseconds kLongYield = microseconds(20);   // another thread needs this core
constexpr Nanoseconds kSpunTooLong = std::chrono::seconds(1);

timespec to_timespec(TimePoint t) {
  const auto since = t.time_since_epoch().count();
  return {static_cast<time_t>(since / 1'000'000'000), static_cast<long>(since % 1'000'000'000)};
}

}  // namespace

void Parker::park(TimePoint until, Nanoseconds spin) {
  if (token_.exchange(kEmpty) == kNotified) return;
  const TimePoint start = std::chrono::steady_clock::now();
  if (spin <= Nanoseconds(0) || until - start < kShortWait) return sleep_until(until);
  if (usual_wait_ >= kShortWait || !spin_until(start, start + spin)) sleep_until(until);
  const Nanoseconds waited = std::chrono::steady_clock::now() - start;
  usual_wait_ += (waited - usual_wait_) / 4;
}

// True if the thread was notified.
bool Parker::spin_until(TimePoint start, TimePoint end) {
  for (TimePoint t = start; t < end;) {
    if (token_.load(std::memory_order_relaxed) == kNotified) return token_.exchange(kEmpty) == kNotified;
    sched_yield();
    const TimePoint now = std::chrono::steady_clock::now();
    if (now - t > kLongYield) {
      usual_wait_ = kSpunTooLong;
      return false;
    }
    t = now;
  }
  return false;
}

void Parker::sleep_until(TimePoint until) {
  uint32_t expected = kEmpty;
  if (token_.compare_exchange_strong(expected, kParked)) {
    const timespec deadline = to_timespec(until);
    syscall(SYS_futex, &token_, FUTEX_WAIT_BITSET_PRIVATE, kParked, until == kNever ? nullptr : &deadline,
            nullptr, FUTEX_BITSET_MATCH_ANY);
  }
  token_.exchange(kEmpty);
}

void Parker::unpark() {
  if (token_.exchange(kNotified) == kParked)
    syscall(SYS_futex, &token_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace tutti

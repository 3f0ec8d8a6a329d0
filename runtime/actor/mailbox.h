#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/actor/actor.h"

namespace tutti {

// A bounded queue of envelopes: any thread pushes, one pops. After Vyukov's bounded queue, except that any
// capacity is exact: taking out position q is what lets position q + capacity in.
class Ring {
 public:
  explicit Ring(int capacity);

  // Takes the envelope; false when full, which leaves it alone.
  bool push(Envelope& envelope);
  bool pop(Envelope& envelope);  // the consumer only
  bool empty() const;            // the consumer only
  uint64_t size() const;         // the consumer only; may count a push that is still under way
  uint64_t capacity() const { return capacity_; }

 private:
  // stamp: 2p lets position p in, 2p + 1 holds position p.
  struct alignas(64) Slot {
    std::atomic<uint64_t> stamp{0};
    Envelope envelope;
  };

  uint64_t capacity_;
  uint64_t mask_;
  std::unique_ptr<Slot[]> slots_;
  alignas(64) std::atomic<uint64_t> tail_{0};
  alignas(64) uint64_t head_ = 0;
};

// An actor's incoming messages in two lanes. The order of one sender's messages is kept within a lane; the
// reserved lane is taken first.
class Mailbox {
 public:
  explicit Mailbox(int capacity) : requests_(capacity), reserved_(capacity) {}

  // Takes the envelope; false when its lane is full, which leaves it alone.
  bool push(Envelope& envelope);
  bool pop(Envelope& envelope) { return reserved_.pop(envelope) || requests_.pop(envelope); }
  bool empty() const { return reserved_.empty() && requests_.empty(); }
  bool half_empty() const { return requests_.size() <= requests_.capacity() / 2; }
  bool has_space() const { return requests_.size() < requests_.capacity(); }

 private:
  Ring requests_;
  Ring reserved_;
};

}  // namespace tutti

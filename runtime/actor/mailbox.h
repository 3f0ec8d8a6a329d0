#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/actor/actor.h"

namespace tutti {

// A bounded queue of envelopes: any thread pushes, one pops. After Vyukov's bounded queue, but any capacity
// is exact: popping position q frees the slot of position q + capacity.
class Ring {
 public:
  explicit Ring(int capacity);

  // Moves the envelope into the queue. Returns false and leaves the envelope unchanged if the queue is full.
  bool push(Envelope& envelope);

  // For the consumer's thread only. `size` may count a push that has not finished.
  bool pop(Envelope& envelope);
  bool empty() const;
  uint64_t size() const;
  uint64_t capacity() const { return capacity_; }

 private:
  // stamp: 2p is free for position p, 2p + 1 holds position p.
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

// An actor's incoming messages in two queues. The order of one sender's messages is kept within a queue;
// reserved messages are popped first.
class Mailbox {
 public:
  explicit Mailbox(int capacity) : requests_(capacity), reserved_(capacity) {}

  // As Ring::push.
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

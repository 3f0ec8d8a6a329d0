#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/actor/actor.h"
#include "runtime/actor/stop_token.h"
#include "runtime/clock.h"
#include "runtime/recorder.h"

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
  explicit Mailbox(MailboxCapacity capacity) : requests_(capacity.requests), reserved_(capacity.reserved) {}

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

// Lets one thread sleep until another wakes it. Before sleeping, the thread spins (yielding the core) for up
// to `spin`, if its recent waits were short. An idle thread always sleeps.
class Parker {
 public:
  // Returns after an unpark (also before this call), at `until`, or early.
  void park(TimePoint until, Nanoseconds spin);
  void unpark();

 private:
  bool spin_until(TimePoint start, TimePoint end);
  void sleep_until(TimePoint until);

  enum Token : uint32_t { kEmpty, kParked, kNotified };
  std::atomic<uint32_t> token_{kEmpty};
  Nanoseconds usual_wait_{0};  // moving average; used by the parking thread only
};

// The only reason for which a blocked actor is woken.
enum class Wait : uint8_t { kNothing, kMessage, kReply, kReplyOrTime, kSpace, kTime, kStopped };

// The actors that wait for space in a mailbox.
struct HeldSenders {
  std::mutex mutex;
  std::vector<ControlBlock*> blocks;
  std::atomic<int> count{0};
};

// The scheduler's state of one actor.
struct ControlBlock {
  ControlBlock(ActorId id, std::string name, int rank, MailboxCapacity capacity)
      : id(id), name(std::move(name)), rank(rank), mailbox(capacity) {}

  const ActorId id;
  const std::string name;
  const int rank;
  std::unique_ptr<Actor> actor;
  Recorder* recorder = nullptr;
  StopToken* stop = nullptr;  // of the actor's rank, or of all actors
  std::thread thread;
  bool stopping = false;  // used by the actor's own thread only
  Mailbox mailbox;

  std::optional<Nanoseconds> timeout;  // see Scheduler::abandon_after
  std::string title;
  std::atomic<bool> abandoned{false};  // run() no longer waits for this actor, which handles no more messages

  // The waking thread publishes its data, then a full fence, then reads `waits`. The waiting thread writes
  // `waits`, then a full fence, then reads the data. So at least one of the two sees the other's write.
  alignas(64) std::atomic<Wait> waits{Wait::kNothing};
  std::atomic<uint32_t> waits_on{UINT32_MAX};  // index of the actor that must reply or make space
  std::atomic<const char*> waits_for{""};      // name of the message

  HeldSenders held;
  Parker parker;
};

}  // namespace tutti

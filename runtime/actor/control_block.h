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
#include "runtime/actor/mailbox.h"
#include "runtime/actor/stop_token.h"
#include "runtime/clock.h"
#include "runtime/recorder.h"

namespace tutti {

// Lets one thread sleep until another wakes it. Before sleeping it may spin (yielding the core) for up to
// `spin`, but only while its recent waits were so short that spinning pays: an idle thread always sleeps.
class Parker {
 public:
  // Returns after an unpark (one that came before is not lost), at `until`, or early.
  void park(TimePoint until, Nanoseconds spin);
  void unpark();

 private:
  bool spin_until(TimePoint start, TimePoint end);
  void sleep_until(TimePoint until);

  enum Token : uint32_t { kEmpty, kParked, kNotified };
  std::atomic<uint32_t> token_{kEmpty};
  Nanoseconds usual_wait_{0};  // a moving average; the parking thread's own
};

// What an actor is blocked in, so that it is woken for that and nothing else.
enum class Wait : uint8_t { kNothing, kMessage, kReply, kReplyOrTime, kSpace, kTime, kStopped };

// The actors that are held back because a mailbox is full.
struct HeldSenders {
  std::mutex mutex;
  std::vector<ControlBlock*> blocks;
  std::atomic<int> count{0};
};

// What the scheduler keeps for each actor.
struct ControlBlock {
  ControlBlock(ActorId id, std::string name, int rank, int capacity)
      : id(id), name(std::move(name)), rank(rank), mailbox(capacity) {}

  const ActorId id;
  const std::string name;
  const int rank;
  std::unique_ptr<Actor> actor;
  Recorder* recorder = nullptr;
  StopToken* stop = nullptr;  // its rank's, or everybody's
  std::thread thread;
  bool stopping = false;  // the actor's own thread only
  Mailbox mailbox;

  std::optional<Nanoseconds> timeout;  // of one that may hang, and how it is called
  std::string called;
  std::atomic<bool> abandoned{false};  // run() did not wait for it any longer: it takes nothing more

  // A waker publishes what it has, then a full fence, then reads `waits`; the waiter writes `waits`, then a
  // full fence, then looks for what it wants. So one of the two sees the other.
  alignas(64) std::atomic<Wait> waits{Wait::kNothing};
  std::atomic<uint32_t> waits_on{UINT32_MAX};  // whose space or reply, and for which message
  std::atomic<const char*> waits_for{""};

  HeldSenders held;
  Parker parker;
};

}  // namespace tutti

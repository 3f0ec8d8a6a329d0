#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/actor/delivery_script.h"
#include "runtime/actor/scheduler.h"
#include "runtime/clock.h"
#include "runtime/random.h"

namespace tutti {

// The scheduler of the simulator and of ranks that share a process. Every actor has a thread, but only the
// holder of the run token runs. An actor gives up the token when it blocks, when it polls and before each
// message; the seed draws the next holder. Simulated time advances only if no actor can run, to the earliest
// deadline. So the seed alone fixes the order of events, and sleeping costs nothing.
//
// At real pace the clock is the machine's, for several ranks that train in one process. The order of events
// then depends on timing too.
//
// Actors that poll (idle() returned a past time) can always run. While only such actors can run, time
// advances by a microsecond a turn, and in larger steps the longer no actor is woken.
//
// The run is aborted if no actor can ever run again, or if actors wait for each other in a cycle: for room in
// a full mailbox or for a reply. The reason names each blocked actor and what it waits for.
class TokenScheduler final : public Scheduler {
 public:
  enum class Pace { kSimulated, kReal };
  struct Options {
    uint64_t seed = 0;
    Pace pace = Pace::kSimulated;
    // Keeps all actors on one core, which makes passing the run token ten times cheaper.
    bool pin_to_one_core = true;
    // Called on the receiving thread when the run token passes to another rank, to swap per-process state.
    std::function<void(int rank)> on_switch;
    TimePoint time_limit = kNever;  // the run is aborted at this time
    // The order of deliveries, except for incidental and unrecorded messages. The run is aborted if the next
    // delivery does not happen within kScriptTimeout of simulated time.
    DeliveryScript* script = nullptr;
  };

  static constexpr Nanoseconds kScriptTimeout = std::chrono::seconds(50);

  TokenScheduler() : TokenScheduler(Options()) {}
  explicit TokenScheduler(Options options);
  ~TokenScheduler() override;

  // Simulated time starts at TimePoint{}.
  TimePoint now() const override;

  // Lets simulated time pass for the holder of the run token, on its thread. Throws Aborted.
  void spend(Nanoseconds duration);

  // Replaces the time limit; on the thread of the holder of the run token.
  void set_time_limit(TimePoint limit) { options_.time_limit = limit; }

  // Lengthens the poll interval of an actor that polls for outside events. Whoever causes such an event wakes
  // the actor by `wake_at`.
  void set_poll_interval(ActorId actor, Nanoseconds interval);
  void wake_at(ActorId actor, TimePoint time);

  // Lets no actor of the rank run before `until`, as SIGSTOP does to a process; an actor that runs now stops
  // when it next gives up the run token. A time that has passed lets the rank continue.
  void suspend(int rank, TimePoint until);

  uint64_t run_token_passes() const { return passes_; }
  // The random draw of the next holder: equal in two runs that were equal so far.
  uint64_t next_draw() const { return draw_.bits(passes_); }
  // A hash of all deliveries so far, in order: receiver, sender and message.
  uint64_t delivery_digest() const { return deliveries_.bits(); }
  // The cycle of full mailboxes for which the run was aborted: actors and their waits; else "".
  const std::string& blocked_senders() const { return blocked_senders_; }

 protected:
  void park(ControlBlock& self, TimePoint until) override;
  void unpark(ControlBlock& block) override;
  void enter(ControlBlock& block) override;
  void leave(ControlBlock& block) override;
  void begin() override;
  bool take(ControlBlock& self, Envelope& envelope) override;
  void deliver(ControlBlock& block, const Envelope& envelope) override;

 private:
  enum class Phase : uint8_t { kReady, kPolling, kParked, kGone };
  struct ActorState {
    Phase phase = Phase::kReady;
    bool notified = false;  // unparked while it held the run token
    TimePoint until = kNever;
    bool suspended = false;
    TimePoint suspended_until{};
    Nanoseconds poll_interval{0};     // the least, while the actor waits for a message
    std::multiset<TimePoint> alarms;  // of wake_at
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  bool is_unscripted(const ControlBlock& self, const Envelope& envelope) const;
  bool is_next(const ControlBlock& self, const Envelope& envelope) const;
  void wake_first();
  void wake_next(int rank);
  TimePoint wake_time(const ControlBlock& self, TimePoint until) const;
  void yield(ControlBlock& self, Phase phase, TimePoint until);
  void pass_run_token();
  uint32_t choose(std::unique_lock<std::mutex>& lock);
  void pass_time(std::unique_lock<std::mutex>& lock, TimePoint until);
  uint32_t draw();
  bool any_in(Phase phase) const;
  void wait_for_run_token(ControlBlock& self);
  void advance(TimePoint to);
  TimePoint next_deadline() const;
  TimePoint next_poll();
  std::string abort_reason(const ControlBlock& self);
  std::vector<const ControlBlock*> wait_cycle(const ControlBlock& self) const;
  std::string blocked_actors() const;

  Options options_;
  std::string blocked_senders_;
  RandomKey draw_;
  RandomKey deliveries_;
  std::vector<std::deque<Envelope>> held_back_;  // by actor: messages that the script does not allow yet
  TimePoint last_scripted_{};                    // delivery
  std::condition_variable changed_;              // an actor can run, at real pace
  std::mutex
      mutex_;  // guards all below; taken by the holder of the run token and by threads that are no actors
  std::vector<ActorState> states_;
  std::atomic<uint32_t> holder_{kNone};
  std::atomic<int64_t> now_{0};
  uint64_t passes_ = 0;
  uint64_t idle_polls_ = 0;  // in a row, since an actor was last woken
  int rank_ = -1;            // of the last holder
  int core_ = -1;            // on which all actors run; -1: any
};

// The scheduler's time. Wall-clock time begins at a fixed moment, so that simulated logs are equal.
class SimClock final : public Clock {
 public:
  static constexpr int64_t kStartUnixMs = 1'700'000'000'000;

  explicit SimClock(const Scheduler& scheduler) : scheduler_(scheduler) {}
  TimePoint now() const override { return scheduler_.now(); }
  int64_t unix_ms() const override {
    return kStartUnixMs + now().time_since_epoch() / std::chrono::milliseconds(1);
  }

 private:
  const Scheduler& scheduler_;
};

}  // namespace tutti

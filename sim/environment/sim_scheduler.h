#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/actor/scheduler.h"
#include "runtime/random.h"
#include "sim/environment/delivery_script.h"

namespace tutti {

// The scheduler of the simulator. Every actor still has a thread, but only the one that holds the run token
// runs; it gives it up where it blocks or polls and before each message it handles. Who gets it next is drawn
// from the seed, and time is made up: it moves, to the earliest deadline, only when nobody can run. So the
// seed alone fixes what happens in what order, and sleeping costs nothing.
//
// At real pace, time is the machine's and waiting is waiting: for several ranks that train in one process.
// What happens in what order is then no longer the seed's alone.
//
// Actors that poll (idle returned a time that has passed) count as able to run. While all that can run only
// poll, time moves a microsecond a turn, and faster the longer nothing happens.
//
// A run in which nobody can ever run again, or in which actors wait for each other in a circle (for space in
// a full mailbox, for an answer), is aborted with a reason that names each blocked actor and what it waits
// for.
class SimScheduler final : public Scheduler {
 public:
  enum class Pace { kMadeUp, kReal };
  struct Options {
    uint64_t seed = 0;
    Pace pace = Pace::kMadeUp;
    // Keep all actors on one core, where passing the run token is an order of magnitude cheaper.
    bool pin_to_one_core = true;
    // Runs on the receiving thread whenever the run token goes to another rank: swap what is kept per
    // process.
    std::function<void(int rank)> on_switch;
    TimePoint time_limit = kNever;  // of the made-up clock; beyond it the run is aborted
    // Messages are taken in this order, and a run that does not come to its next line within kScriptTimeout
    // of made-up time is aborted. Messages that are incidental are free.
    DeliveryScript* script = nullptr;
  };

  static constexpr Nanoseconds kScriptTimeout = std::chrono::seconds(50);

  SimScheduler() : SimScheduler(Options()) {}
  explicit SimScheduler(Options options);
  ~SimScheduler() override;

  // Made-up time starts at TimePoint{}.
  TimePoint now() const override;

  // On the thread of the actor that holds the run token: what it does takes this long. Throws Aborted.
  void spend(Nanoseconds duration);

  // On the thread of the actor that holds the run token: the time limit is this one from here on.
  void set_time_limit(TimePoint limit) { options_.time_limit = limit; }

  // An actor that only looks, when idle, for what comes from outside: with `wake_at` for all that comes it
  // need not look more often than this.
  void set_poll_interval(ActorId actor, Nanoseconds at_most_every);
  void wake_at(ActorId actor, TimePoint time);

  uint64_t run_token_passes() const { return passes_; }
  // Of who is next, after the last pass: two runs that were alike so far draw alike.
  uint64_t next_draw() const { return draw_.bits(passes_); }
  // A hash of every delivery so far, in their order: to whom, from whom, what message.
  uint64_t delivery_digest() const { return deliveries_.bits(); }
  // Where the run was aborted for senders that block each other: these, and what each waits for. Else "".
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
  enum class Phase : uint8_t { kAble, kPolling, kParked, kGone };
  struct ActorState {
    Phase phase = Phase::kAble;
    bool notified = false;  // was unparked while it held the run token
    TimePoint until = kNever;
    Nanoseconds poll_interval{0};     // at least, when it waits for a message
    std::multiset<TimePoint> alarms;  // that cut a nap short
  };
  static constexpr uint32_t kNobody = UINT32_MAX;

  bool is_next(const ControlBlock& self, const Envelope& envelope) const;
  void wake_first();
  void wake_next(int rank);
  TimePoint next_poll_of(const ControlBlock& self, TimePoint until) const;
  void yield(ControlBlock& self, Phase phase, TimePoint until);
  void pass_run_token();
  uint32_t choose(std::unique_lock<std::mutex>& lock);
  void pass_time(std::unique_lock<std::mutex>& lock, TimePoint until);
  uint32_t draw();
  bool anybody(Phase phase) const;
  void wait_for_run_token(ControlBlock& self);
  void advance(TimePoint to);
  TimePoint next_deadline() const;
  TimePoint next_poll();
  std::string trouble(const ControlBlock& self);
  std::vector<const ControlBlock*> circle_of(const ControlBlock& self) const;
  std::string waiting() const;

  Options options_;
  std::string blocked_senders_;
  RandomKey draw_;
  RandomKey deliveries_;
  std::vector<std::deque<Envelope>> waiting_;  // by actor, with a script: what has come and is not yet taken
  TimePoint last_taken_{};
  std::condition_variable changed_;  // somebody can run, at real pace
  std::mutex mutex_;  // of what follows; only the run token's holder and threads outside the cast touch it
  std::vector<ActorState> states_;
  std::atomic<uint32_t> holder_{kNobody};
  std::atomic<int64_t> now_{0};
  uint64_t passes_ = 0;
  uint64_t fruitless_polls_ = 0;  // in a row, since anybody was woken
  int rank_ = -1;                 // of the last holder
  int core_ = -1;                 // that all actors are kept on; -1: any
};

}  // namespace tutti

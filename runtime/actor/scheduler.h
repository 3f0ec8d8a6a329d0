#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "runtime/actor/actor.h"
#include "runtime/recorder.h"

namespace tutti {

// What the scheduler keeps for each actor: thread, mailbox, whether it is parked. Defined in
// runtime/actor/control_block.h.
struct ControlBlock;
enum class Wait : uint8_t;
class StopToken;

// Runs actors, each on its own thread. The contract is the same in production (ThreadScheduler) and in the
// simulator (sim/SimScheduler): they differ only in how a blocked actor waits (`park`), how it is woken
// (`unpark`) and what time it is (`now`). Everything that blocks (receive, send to a full mailbox, ask,
// sleep) is built on these three.
class Scheduler {
 public:
  static constexpr int kDefaultCapacity = 256;

  Scheduler();
  virtual ~Scheduler();
  Scheduler(const Scheduler&) = delete;

  // Two steps, since actors know each other: first every id, then every actor. `capacity` bounds each lane of
  // the mailbox. An actor's thread is named "rank.name".
  ActorId reserve(const std::string& name, int rank, int capacity = kDefaultCapacity);
  void install(ActorId id, std::unique_ptr<Actor> actor);

  // Tells `recorder` of every message that an actor of the rank takes, right before it handles it. Before the
  // run, once the rank's actors are reserved.
  void record_deliveries(int rank, Recorder& recorder);

  // Ranks end alone, as processes do: an actor that fails or aborts ends its own rank, and run() does not
  // throw for it. Before any actor is reserved.
  void separate_ranks();

  // An actor whose calls may take long, or never return. Where actors run side by side (ThreadScheduler)
  // run() does not wait for it without end: once all others have stopped, it has `patience` for all that it
  // still has to do, and then its thread is left behind. `called`: how it is named. Before the run.
  void abandon_after(ActorId id, const std::string& called, Nanoseconds timeout);
  // Those whose threads run() left behind, as they are called. While a thread lives, the scheduler must, and
  // what the thread's actor uses; the other actors are kept, since it may know of what they hold.
  const std::vector<std::string>& abandoned() const;

  // Starts all actors; returns when each has stopped; once. When the run was aborted it throws, after all
  // threads have ended: the UserError or OperatingError that an actor failed with, else Aborted with the
  // first reason.
  void run();

  // From any thread; the first reason stands.
  void abort(const std::string& reason);
  bool aborted() const;

  // Of separate ranks: ends the rank's actors wherever they block; how a rank was aborted, if it was; whether
  // all its actors have stopped.
  void abort_rank(int rank, const std::string& reason);
  const StopToken& stop_token_of(int rank) const;
  bool stopped(int rank) const;

  // From outside the cast (a signal-watching thread, a test). Never blocks; false when the mailbox is full.
  bool post(ActorId to, Message message);

  const std::string& name(ActorId id) const;
  int rank(ActorId id) const;
  virtual TimePoint now() const = 0;

 protected:
  // Blocks the calling actor until `unpark` or `until`; may return early. An unpark before the park is not
  // lost. With an `until` that has passed it lets others run and returns.
  virtual void park(ControlBlock& self, TimePoint until) = 0;
  virtual void unpark(ControlBlock& block) = 0;
  // Around the body of an actor's thread.
  virtual void enter(ControlBlock&) {}
  virtual void leave(ControlBlock&) {}
  // Called by run before any thread starts / after each thread was created.
  virtual void begin() {}
  // Whether a thread that does not end can be left behind.
  virtual bool abandons() const { return false; }
  // The message that the actor handles next, if there is one.
  virtual bool take(ControlBlock& self, Envelope& envelope);
  // Each message, right before its actor handles it.
  virtual void deliver(ControlBlock&, const Envelope&) {}

  // "rank 0 compute waits for rank 0 sync to answer ReduceBucket".
  std::string describe(const ControlBlock& block) const;
  std::string full_name(const ControlBlock& block) const;  // "rank 0 compute"

  bool aborted(const ControlBlock& block) const;
  void throw_if_aborted(const ControlBlock& self) const;

  std::vector<std::unique_ptr<ControlBlock>> blocks_;

 private:
  friend class Context;
  struct State;

  ControlBlock& block(ActorId id) const;
  void spawn();
  void join();
  bool is_done_with(ControlBlock& straggler, TimePoint others_ended);
  void run_actor(ControlBlock& self);
  void handle_messages(ControlBlock& self);
  bool handle_next(ControlBlock& self, Context& context);
  bool take_next(ControlBlock& self, Envelope& envelope);
  void record_delivery(ControlBlock& self, const Envelope& envelope) const;
  void abort(StopToken& stop, const std::string& reason, std::exception_ptr failure = nullptr);
  void close(ControlBlock& self);
  void drain(ControlBlock& stopped);

  Envelope receive(ControlBlock& self);
  void send(ControlBlock& self, ActorId to, Envelope envelope);
  void send_when_space(ControlBlock& self, ControlBlock& to, Envelope& envelope);
  Message await(ControlBlock& self, ReplySlot& slot);
  bool await_until(ControlBlock& self, ReplySlot& slot, TimePoint until);
  void answer(ReplySlot& slot, Message message, ReplySlot::State state);
  void sleep(ControlBlock& self, TimePoint until);
  void notify(ControlBlock& to);
  void wake_held(ControlBlock& self);
  template <class Ready>
  void block(ControlBlock& self, Wait why, TimePoint until, Ready ready);

  std::unique_ptr<State> state_;
};

}  // namespace tutti

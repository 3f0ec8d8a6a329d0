#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "runtime/actor/actor.h"
#include "runtime/recorder.h"

namespace tutti {

struct ControlBlock;  // runtime/actor/control_block.h
enum class Wait : uint8_t;
class StopToken;

// Runs actors, each on its own thread. ThreadScheduler (production) and TokenScheduler (simulation) differ
// only in how a blocked actor waits (`park`), is woken (`unpark`) and reads the clock (`now`). All blocking
// calls (receive, send to a full mailbox, ask, sleep) are built on these three.
class Scheduler {
 public:
  Scheduler();
  virtual ~Scheduler();
  Scheduler(const Scheduler&) = delete;

  // Adds an actor in two steps, since actors hold each other's ids: reserve all ids, then install all actors.
  // The actor's thread is named "rank.name".
  ActorId reserve(const std::string& name, int rank, MailboxCapacity capacity = {});
  void install(ActorId id, std::unique_ptr<Actor> actor);

  // Reports each message to `recorder` right before an actor of the rank handles the message. Call before
  // run(), after the rank's actors are reserved.
  void record_deliveries(int rank, Recorder& recorder);

  // Makes ranks end separately, as processes do: an actor that fails or aborts ends its own rank, and run()
  // does not throw. Call before any actor is reserved.
  void separate_ranks();

  // Limits run()'s wait for an actor that may block for long or forever. If `timeout` has passed after all
  // other actors have stopped, ThreadScheduler abandons the actor's thread. `title` names the actor in
  // abandoned(). Call before run().
  void abandon_after(ActorId id, const std::string& title, Nanoseconds timeout);
  // Titles of the actors that run() abandoned. The scheduler, all its actors and all objects that they use
  // must outlive the abandoned threads.
  const std::vector<std::string>& abandoned() const;

  // Starts all actors and returns when all have stopped. May be called once. If the run was aborted, throws
  // after all threads have ended: the RunError of the actor that failed, else Aborted with the first end.
  void run();

  // May be called from any thread. The first end is kept.
  void abort(const RankEnd& end);
  bool aborted() const;
  RankEnd end() const;  // the first, after an abort

  // For separate ranks. `abort_rank` ends the rank's actors, even those that are blocked; `stop_token_of`
  // says whether and how the rank was aborted; `stopped` is true if all actors of the rank have stopped.
  void abort_rank(int rank, const RankEnd& end);
  const StopToken& stop_token_of(int rank) const;
  bool stopped(int rank) const;

  // Sends from a thread that is no actor's (signals, tests). Never blocks; false if the mailbox is full.
  bool post(ActorId to, Message message);

  const std::string& name(ActorId id) const;
  int rank(ActorId id) const;
  virtual TimePoint now() const = 0;

 protected:
  // Blocks the calling actor until `unpark` or `until`; may return early. An unpark before the park counts.
  // If `until` has passed, lets other threads run and returns.
  virtual void park(ControlBlock& self, TimePoint until) = 0;
  virtual void unpark(ControlBlock& block) = 0;
  // Called at the beginning and the end of an actor's thread.
  virtual void enter(ControlBlock&) {}
  virtual void leave(ControlBlock&) {}
  // Called by run() before any thread starts.
  virtual void begin() {}
  // True if abandon_after has an effect.
  virtual bool abandons() const { return false; }
  // Pops the message that the actor handles next; false if there is none.
  virtual bool take(ControlBlock& self, Envelope& envelope);
  // Called with each message right before its actor handles the message.
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
  bool join_or_abandon(ControlBlock& straggler, TimePoint others_ended);
  void run_actor(ControlBlock& self);
  void handle_messages(ControlBlock& self);
  bool handle_next(ControlBlock& self, Context& context);
  bool take_next(ControlBlock& self, Envelope& envelope);
  void record_delivery(ControlBlock& self, const Envelope& envelope) const;
  void abort(StopToken& stop, const RankEnd& end, std::exception_ptr failure = nullptr);
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

// The scheduler for production: actors run concurrently, idle actors sleep.
class ThreadScheduler final : public Scheduler {
 public:
  // `spin`: how long an actor spins before sleeping, if there is a core for each actor and waits are short.
  explicit ThreadScheduler(Nanoseconds spin = kDefaultSpin) : spin_(spin) {}
  static constexpr Nanoseconds kDefaultSpin = std::chrono::microseconds(50);

  TimePoint now() const override;

 protected:
  void park(ControlBlock& self, TimePoint until) override;
  void unpark(ControlBlock& block) override;
  void enter(ControlBlock& block) override;
  void begin() override;
  bool abandons() const override { return true; }

 private:
  Nanoseconds spin_;
};

}  // namespace tutti

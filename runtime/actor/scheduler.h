#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "runtime/actor/actor.h"
#include "runtime/recorder.h"

namespace tutti {

// What the scheduler keeps for each actor: thread, mailbox, whether it is parked. Defined in
// runtime/actor/cell.h.
struct Cell;
enum class Wait : uint8_t;
class Fate;

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
  void may_hang(ActorId id, const std::string& called, Nanoseconds patience);
  // Those whose threads run() left behind, as they are called. While a thread lives, the scheduler must, and
  // what the thread's actor uses; the other actors are kept, since it may know of what they hold.
  const std::vector<std::string>& left_behind() const;

  // Starts all actors; returns when each has stopped; once. When the run was aborted it throws, after all
  // threads have ended: the RunError that an actor failed with, else Aborted with the first end.
  void run();

  // From any thread; the first end stands.
  void abort(const RankEnd& end);
  bool aborted() const;

  // Of separate ranks: ends the rank's actors wherever they block; how a rank was aborted, if it was; whether
  // all its actors have stopped.
  void abort_rank(int rank, const RankEnd& end);
  const Fate& fate_of(int rank) const;
  bool stopped(int rank) const;

  // From outside the cast (a signal-watching thread, a test). Never blocks; false when the mailbox is full.
  bool post(ActorId to, Message message);

  const std::string& name(ActorId id) const;
  int rank(ActorId id) const;
  virtual TimePoint now() const = 0;

 protected:
  // Blocks the calling actor until `unpark` or `until`; may return early. An unpark before the park is not
  // lost. With an `until` that has passed it lets others run and returns.
  virtual void park(Cell& self, TimePoint until) = 0;
  virtual void unpark(Cell& cell) = 0;
  // Around the body of an actor's thread.
  virtual void enter(Cell&) {}
  virtual void leave(Cell&) {}
  // Called by run before any thread starts / after each thread was created.
  virtual void begin() {}
  // Whether a thread that does not end can be left behind.
  virtual bool leaves_behind() const { return false; }
  // The message that the actor handles next, if there is one.
  virtual bool take(Cell& self, Envelope& envelope);
  // Each message, right before its actor handles it.
  virtual void deliver(Cell&, const Envelope&) {}

  // "rank 0 compute waits for rank 0 sync to answer ReduceBucket".
  std::string describe(const Cell& cell) const;
  std::string full_name(const Cell& cell) const;  // "rank 0 compute"

  bool aborted(const Cell& cell) const;
  void throw_if_aborted(const Cell& self) const;

  std::vector<std::unique_ptr<Cell>> cells_;

 private:
  friend class Context;
  struct State;

  Cell& cell(ActorId id) const;
  void spawn();
  void join();
  bool is_done_with(Cell& straggler, TimePoint others_ended);
  void run_actor(Cell& self);
  void handle_messages(Cell& self);
  bool handle_next(Cell& self, Context& context);
  bool take_next(Cell& self, Envelope& envelope);
  void record_delivery(Cell& self, const Envelope& envelope) const;
  void abort(Fate& fate, const RankEnd& end, std::exception_ptr failure = nullptr);
  void close(Cell& self);
  void drain(Cell& stopped);

  Envelope receive(Cell& self);
  void send(Cell& self, ActorId to, Envelope envelope);
  void send_when_space(Cell& self, Cell& to, Envelope& envelope);
  Message await(Cell& self, ReplySlot& slot);
  bool await_until(Cell& self, ReplySlot& slot, TimePoint until);
  void answer(ReplySlot& slot, Message message, ReplySlot::State state);
  void sleep(Cell& self, TimePoint until);
  void notify(Cell& to);
  void wake_held(Cell& self);
  template <class Ready>
  void block(Cell& self, Wait why, TimePoint until, Ready ready);

  std::unique_ptr<State> state_;
};

}  // namespace tutti

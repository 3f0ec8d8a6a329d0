#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/actor.h"

namespace tutti {

// What the scheduler keeps for each actor: thread, mailbox, whether it is parked. Defined in runtime/cell.h.
struct Cell;

// Runs actors, each on its own thread. The contract is the same in production (ThreadScheduler) and in the simulator
// (sim/SimScheduler): they differ only in how a blocked actor waits (`park`), how it is woken (`unpark`) and what time
// it is (`now`). Everything that blocks (receive, send to a full mailbox, ask, sleep) is built on these three.
class Scheduler {
 public:
  static constexpr int kDefaultCapacity = 256;

  Scheduler();
  virtual ~Scheduler();
  Scheduler(const Scheduler&) = delete;

  // Two steps, since actors know each other: first every id, then every actor. `capacity` bounds each lane of the
  // mailbox. An actor's thread is named "rank.name".
  ActorId reserve(const std::string& name, int rank, int capacity = kDefaultCapacity);
  void install(ActorId id, std::unique_ptr<Actor> actor);

  // Starts all actors; returns when each has stopped. Throws Aborted when the run was aborted, after all threads ended.
  void run();

  // From any thread; the first reason stands.
  void abort(const std::string& reason);
  bool aborted() const;

  // From outside the cast (a signal-watching thread, a test). Never blocks; false when the mailbox is full.
  bool post(ActorId to, Message message);

  const std::string& name(ActorId id) const;
  int rank(ActorId id) const;
  virtual TimePoint now() const = 0;

 protected:
  // Blocks the calling actor until `unpark` or `until`; may return early. An unpark before the park is not lost.
  virtual void park(Cell& self, TimePoint until) = 0;
  virtual void unpark(Cell& cell) = 0;
  // Around the body of an actor's thread.
  virtual void enter(Cell&) {}
  virtual void leave(Cell&) {}
  // Called by run before any thread starts / after each thread was created.
  virtual void begin() {}

  std::vector<std::unique_ptr<Cell>> cells_;

 private:
  friend class Context;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/actor/message.h"
#include "runtime/clock.h"
#include "runtime/error.h"

namespace tutti {

class Scheduler;
class Context;

// Names an actor within its scheduler.
struct ActorId {
  uint32_t index = UINT32_MAX;
  friend bool operator==(ActorId, ActorId) = default;
};

// Where an ask's answer lands: one slot, so that a reply never blocks and is never dropped. Held by asker and
// message; the last one out frees it.
class ReplySlot;
using ReplySlotPtr = std::shared_ptr<ReplySlot>;

// A message under way: who sent it, and the slot that waits for an answer (null unless it was asked).
struct Envelope {
  ActorId from;
  Message message;
  ReplySlotPtr slot;
};

// Thrown out of every blocking call once the scheduler aborts: a peer died, an actor failed.
class Aborted : public RunError {
 public:
  explicit Aborted(const RankEnd& end) : RunError(end.kind, end.reason) {}
};

// One of a rank's cast. It handles one message at a time, run to completion, on a thread of its own, and
// reaches the outside only through what its constructor was given and through the Context. An exception that
// leaves any of these ends the run: the scheduler aborts with the actor's name and the exception's text.
class Actor {
 public:
  virtual ~Actor() = default;

  // On the actor's thread, before the first message.
  virtual void start(Context&) {}

  virtual void receive(Context& context, Envelope& envelope) = 0;

  // Called whenever the mailbox is empty. Returns when it wants to be called again at the latest: a time that
  // has passed already polls (the thread yields in between), nullopt waits for the next message.
  virtual std::optional<TimePoint> idle(Context&) { return std::nullopt; }
};

// An answer that was asked for and is not here yet. Movable; dropping it drops the answer.
template <class Reply>
class Pending;

// What an actor may do to the world; valid on its own thread only.
class Context {
 public:
  Context(Scheduler& scheduler, ActorId self) : scheduler_(scheduler), self_(self) {}

  ActorId self() const { return self_; }
  TimePoint now() const;

  // Puts the message into the mailbox of `to`. Blocks while it is full (the request is held back, not
  // dropped); a reserved message never blocks. Messages to an actor that has stopped are dropped.
  void send(ActorId to, Message message);

  // Sends, and waits for the reply; `request` returns at once. Throws Aborted when the run ends first.
  template <class Reply>
  Reply ask(ActorId to, Message message);
  template <class Reply>
  Pending<Reply> request(ActorId to, Message message);

  // Answers an asked message; may be called later than its receive, and from there on, once.
  void reply(Envelope& envelope, Message message);

  void sleep(Nanoseconds duration);

  // Waits for the actor's next message and takes it: for an actor whose work reads better as a loop than as
  // handlers. Replies to asked messages are due as in Actor::receive. Throws Aborted when the run ends first.
  Envelope receive();

  // The actor ends after the message in hand.
  void stop();

  // Ends the whole run: every blocking call of every actor throws Aborted.
  void abort(const RankEnd& end);
  bool aborted() const;

 private:
  template <class Reply>
  friend class Pending;
  ReplySlotPtr post(ActorId to, Message message);
  Message wait(const ReplySlotPtr& slot);
  bool wait_until(const ReplySlotPtr& slot, TimePoint until);

  Scheduler& scheduler_;
  ActorId self_;
};

template <class Reply>
class Pending {
 public:
  Pending() = default;
  Pending(Context& context, ReplySlotPtr slot) : context_(&context), slot_(std::move(slot)) {}

  explicit operator bool() const { return slot_ != nullptr; }
  bool ready() const;
  // Blocks until the answer is here, or it is `until`; whether it is here. Throws Aborted.
  bool ready_by(TimePoint until) const;
  // Blocks until the answer is here; once. Throws Aborted. The answer must be a Reply.
  Reply wait();

 private:
  Context* context_ = nullptr;
  ReplySlotPtr slot_;
};

}  // namespace tutti

#include "runtime/actor/actor_inl.h"

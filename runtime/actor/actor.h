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

// Receives the reply to one request. A slot per request, so that a reply never blocks and is never dropped.
// Shared by the asker and the message.
class ReplySlot;
using ReplySlotPtr = std::shared_ptr<ReplySlot>;

// The most messages that may wait in a mailbox: a full queue of requests blocks senders, a full queue of
// reserved messages is a program's error.
struct MailboxCapacity {
  int requests = 256;
  int reserved = 256;
};

// A message in transit, with its sender and the slot for the reply (null if no reply is expected).
struct Envelope {
  ActorId from;
  Message message;
  ReplySlotPtr slot;
};

// Thrown by every blocking call after the scheduler aborts: a peer died, an actor failed.
class Aborted : public RunError {
 public:
  explicit Aborted(const RankEnd& end) : RunError(end.kind, end.reason) {}
};

// Handles one message at a time on its own thread. Reaches the outside only through its constructor's
// arguments and the Context. An exception thrown by any method below aborts the run, with the actor's name
// and the exception's text as the reason.
class Actor {
 public:
  virtual ~Actor() = default;

  // Runs on the actor's thread, before the first message.
  virtual void start(Context&) {}

  virtual void receive(Context& context, Envelope& envelope) = 0;

  // Called whenever the mailbox is empty. Returns the latest time of the next call: a past time polls (the
  // thread yields in between), nullopt waits for the next message.
  virtual std::optional<TimePoint> idle(Context&) { return std::nullopt; }
};

// A future: the reply to a request. Movable; destroying it drops the reply.
template <class Reply>
class Pending;

// An actor's interface to the scheduler. Valid on the actor's own thread only.
class Context {
 public:
  Context(Scheduler& scheduler, ActorId self) : scheduler_(scheduler), self_(self) {}

  ActorId self() const { return self_; }
  TimePoint now() const;

  // Puts the message into the mailbox of `to`. Blocks while the mailbox is full; a reserved message never
  // blocks. Messages to a stopped actor are dropped.
  void send(ActorId to, Message message);

  // `ask` sends and waits for the reply; `request` returns at once. Throws Aborted if the run ends first.
  template <class Reply>
  Reply ask(ActorId to, Message message);
  template <class Reply>
  Pending<Reply> request(ActorId to, Message message);

  // Replies to a request, exactly once, during `receive` or later.
  void reply(Envelope& envelope, Message message);

  void sleep(Nanoseconds duration);

  // Waits for and returns the actor's next message, for an actor that is written as a loop. Requests must be
  // replied to, as in Actor::receive. Throws Aborted if the run ends first.
  Envelope receive();

  // Ends the actor after the current message.
  void stop();

  // Ends the run: every blocking call of every actor throws Aborted.
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
  // Blocks until the reply arrives or the time is `until`. True if the reply has arrived; false also if the
  // asked actor has stopped. Throws Aborted.
  bool ready_by(TimePoint until) const;
  // Blocks until the reply arrives. May be called once. Throws Aborted. The reply must be of type Reply.
  Reply wait();

 private:
  Context* context_ = nullptr;
  ReplySlotPtr slot_;
};

}  // namespace tutti

#include "runtime/actor/actor_inl.h"

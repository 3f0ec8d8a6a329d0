#include "runtime/actor/scheduler.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <utility>

#include "runtime/actor/control_block.h"
#include "runtime/actor/signal_stack.h"
#include "runtime/error.h"
#include "runtime/workers.h"

namespace tutti {
namespace {

constexpr Nanoseconds kStragglerInterval = std::chrono::milliseconds(1);
constexpr Nanoseconds kAbortTimeout = std::chrono::seconds(1);

}  // namespace

struct Scheduler::State {
  bool began = false;
  StopToken everybody;
  bool separate = false;
  std::map<int, StopToken> ranks;  // if `separate`
  std::vector<std::string> abandoned;
};

Scheduler::Scheduler() : state_(std::make_unique<State>()) {}
Scheduler::~Scheduler() = default;

ActorId Scheduler::reserve(const std::string& name, int rank, MailboxCapacity capacity) {
  TUTTI_ASSERT(!state_->began, "actors are reserved before the run");
  const ActorId id{static_cast<uint32_t>(blocks_.size())};
  blocks_.push_back(std::make_unique<ControlBlock>(id, name, rank, capacity));
  blocks_.back()->stop = state_->separate ? &state_->ranks[rank] : &state_->everybody;
  return id;
}

void Scheduler::separate_ranks() {
  TUTTI_ASSERT(blocks_.empty(), "ranks are separated before actors are reserved");
  state_->separate = true;
}

void Scheduler::install(ActorId id, std::unique_ptr<Actor> actor) { block(id).actor = std::move(actor); }

void Scheduler::abandon_after(ActorId id, const std::string& title, Nanoseconds timeout) {
  block(id).title = title;
  block(id).timeout = timeout;
}

const std::vector<std::string>& Scheduler::abandoned() const { return state_->abandoned; }

void Scheduler::record_deliveries(int rank, Recorder& recorder) {
  for (const auto& block : blocks_)
    if (block->rank == rank) block->recorder = &recorder;
}

ControlBlock& Scheduler::block(ActorId id) const {
  TUTTI_ASSERT(id.index < blocks_.size(), "no such actor");
  return *blocks_[id.index];
}

const std::string& Scheduler::name(ActorId id) const { return block(id).name; }
int Scheduler::rank(ActorId id) const { return block(id).rank; }
std::string Scheduler::full_name(const ControlBlock& block) const {
  return "rank " + std::to_string(block.rank) + " " + block.name;
}

std::string Scheduler::describe(const ControlBlock& block) const {
  const std::string who = full_name(block);
  const uint32_t other = block.waits_on.load(std::memory_order_relaxed);
  const std::string whom = other < blocks_.size() ? full_name(*blocks_[other]) : "";
  const std::string what = block.waits_for.load(std::memory_order_relaxed);
  switch (block.waits.load(std::memory_order_relaxed)) {
    case Wait::kMessage:
      return who + " waits for a message";
    case Wait::kReply:
    case Wait::kReplyOrTime:
      return who + " waits for " + whom + " to answer " + what;
    case Wait::kSpace:
      return who + " waits for space in the mailbox of " + whom + " to send " + what;
    case Wait::kTime:
      return who + " sleeps";
    case Wait::kStopped:
      return who + " has stopped";
    case Wait::kNothing:
      break;
  }
  return who + " runs";
}

void Scheduler::run() {
  TUTTI_ASSERT(!std::exchange(state_->began, true), "a scheduler runs once");
  for (const auto& block : blocks_)
    TUTTI_ASSERT(block->actor, full_name(*block) + " was reserved but not installed");
  begin();
  spawn();
  join();
  if (!aborted()) return;
  if (const auto failure = state_->everybody.failure()) std::rethrow_exception(failure);
  throw Aborted(state_->everybody.end());
}

void Scheduler::spawn() {
  for (const auto& block : blocks_) {
    try {
      block->thread = std::thread([this, self = block.get()] { run_actor(*self); });
    } catch (const std::system_error& error) {
      abort({EndKind::kOperatingError,
             "no thread for " + full_name(*block) + ": " + error.what() +
                 "; the system's limit on memory (`ulimit -v`) or on processes (`ulimit -u`) is too low"});
      close(*block);
      leave(*block);
    }
  }
}

void Scheduler::join() {
  std::vector<ControlBlock*> stragglers;
  for (const auto& block : blocks_) {
    if (!block->thread.joinable()) continue;
    if (block->timeout && abandons())
      stragglers.push_back(block.get());
    else
      block->thread.join();
  }
  const TimePoint since = now();
  while (!stragglers.empty()) {
    std::erase_if(stragglers, [&](ControlBlock* one) { return join_or_abandon(*one, since); });
    if (!stragglers.empty()) std::this_thread::sleep_for(kStragglerInterval);
  }
}

// Joins the actor's thread if it has ended, or abandons the thread after its timeout; false: neither yet.
bool Scheduler::join_or_abandon(ControlBlock& block, TimePoint others_ended) {
  if (block.waits.load() == Wait::kStopped) {
    block.thread.join();
    return true;
  }
  const Nanoseconds timeout = aborted(block) ? std::min(kAbortTimeout, *block.timeout) : *block.timeout;
  if (now() - others_ended < timeout) return false;
  block.abandoned = true;
  block.thread.detach();
  state_->abandoned.push_back(block.title);
  return true;
}

void Scheduler::run_actor(ControlBlock& self) {
  const std::string name = std::to_string(self.rank) + "." + self.name;
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  const SignalStack signal_stack;
  enter(self);
  try {
    handle_messages(self);
  } catch (const RunError& error) {
    abort(*self.stop, {error.kind(), full_name(self) + ": " + error.what()}, std::current_exception());
  } catch (const std::exception& error) {
    const RankEnd end = end_by(error);
    abort(*self.stop, {end.kind, full_name(self) + ": " + end.reason});
  } catch (...) {
    abort(*self.stop, {EndKind::kProgramError, full_name(self) + ": " + handled_error()});
  }
  close(self);
  leave(self);
}

void Scheduler::handle_messages(ControlBlock& self) {
  Context context(*this, self.id);
  if (!aborted(self)) self.actor->start(context);
  while (!self.stopping && !aborted(self) && !self.abandoned) {
    if (handle_next(self, context) || self.stopping) continue;
    const std::optional<TimePoint> until = self.actor->idle(context);
    if (!self.stopping)
      block(self, Wait::kMessage, until.value_or(kNever), [&] { return !self.mailbox.empty(); });
  }
}

bool Scheduler::handle_next(ControlBlock& self, Context& context) {
  Envelope envelope;
  if (!take_next(self, envelope)) return false;
  if (aborted(self)) return true;
  self.actor->receive(context, envelope);
  TUTTI_ASSERT(!envelope.slot || aborted(self),
               full_name(self) + " left " + envelope.message.name() + " unanswered");
  return true;
}

bool Scheduler::take_next(ControlBlock& self, Envelope& envelope) {
  if (!take(self, envelope)) return false;
  if (self.held.count.load(std::memory_order_relaxed) > 0 && self.mailbox.half_empty()) wake_held(self);
  deliver(self, envelope);
  if (!aborted(self) && self.recorder && !envelope.message.incidental()) record_delivery(self, envelope);
  return true;
}

bool Scheduler::take(ControlBlock& self, Envelope& envelope) { return self.mailbox.pop(envelope); }

void Scheduler::record_delivery(ControlBlock& self, const Envelope& envelope) const {
  const uint32_t from = envelope.from.index;
  self.recorder->delivered({now(), self.name,
                            from < blocks_.size() ? blocks_[from]->name : std::string_view(),
                            envelope.message.label()});
}

void Scheduler::abort(const RankEnd& end) { abort(state_->everybody, end); }

void Scheduler::abort_rank(int rank, const RankEnd& end) { abort(state_->ranks.at(rank), end); }

void Scheduler::abort(StopToken& stop, const RankEnd& end, std::exception_ptr failure) {
  if (!stop.abort(end, failure)) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const auto& block : blocks_)
    if (&stop == block->stop || &stop == &state_->everybody) unpark(*block);
}

bool Scheduler::aborted() const { return state_->everybody.aborted(); }

RankEnd Scheduler::end() const { return state_->everybody.end(); }

bool Scheduler::aborted(const ControlBlock& block) const { return block.stop->aborted() || aborted(); }

const StopToken& Scheduler::stop_token_of(int rank) const { return state_->ranks.at(rank); }

bool Scheduler::stopped(int rank) const {
  return std::all_of(blocks_.begin(), blocks_.end(), [rank](const auto& block) {
    return block->rank != rank || block->waits.load() == Wait::kStopped;
  });
}

void Scheduler::throw_if_aborted(const ControlBlock& self) const {
  if (aborted(self)) throw Aborted((aborted() ? state_->everybody : *self.stop).end());
}

// Drops the actor's messages, those in the mailbox and those still to come.
void Scheduler::close(ControlBlock& self) {
  self.waits.store(Wait::kStopped);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  drain(self);
  wake_held(self);
}

void Scheduler::drain(ControlBlock& stopped) {
  const std::lock_guard lock(stopped.held.mutex);
  for (Envelope envelope; stopped.mailbox.pop(envelope);) {
    if (const ReplySlotPtr slot = std::move(envelope.slot)) answer(*slot, Message(), ReplySlot::kBroken);
  }
}

bool Scheduler::post(ActorId to, Message message) {
  Envelope envelope{ActorId{}, std::move(message), nullptr};
  if (!block(to).mailbox.push(envelope)) return false;
  notify(block(to));
  return true;
}

Envelope Scheduler::receive(ControlBlock& self) {
  Envelope envelope;
  throw_if_aborted(self);
  while (!take_next(self, envelope)) {
    block(self, Wait::kMessage, kNever, [&] { return !self.mailbox.empty(); });
    throw_if_aborted(self);
  }
  throw_if_aborted(self);
  return envelope;
}

void Scheduler::send(ControlBlock& self, ActorId id, Envelope envelope) {
  throw_if_aborted(self);
  ControlBlock& to = block(id);
  if (!to.mailbox.push(envelope)) {
    TUTTI_ASSERT(!envelope.message.reserved(), full_name(self) + " found no reserved place for " +
                                                   envelope.message.name() + " at " + full_name(to));
    TUTTI_ASSERT(&to != &self, full_name(self) + " filled its own mailbox");
    send_when_space(self, to, envelope);
  }
  notify(to);
}

void Scheduler::send_when_space(ControlBlock& self, ControlBlock& to, Envelope& envelope) {
  {
    const std::lock_guard lock(to.held.mutex);
    to.held.blocks.push_back(&self);
    to.held.count.fetch_add(1);
  }
  self.waits_on.store(to.id.index, std::memory_order_relaxed);
  self.waits_for.store(envelope.message.name(), std::memory_order_relaxed);
  const auto closed = [&] { return to.waits.load(std::memory_order_relaxed) == Wait::kStopped; };
  bool pushed = false;
  const auto ready = [&] { return pushed || closed() || (pushed = to.mailbox.push(envelope)); };
  while (!aborted(self) && !ready()) block(self, Wait::kSpace, kNever, ready);
  {
    const std::lock_guard lock(to.held.mutex);
    std::erase(to.held.blocks, &self);
    to.held.count.fetch_sub(1);
  }
  if (!pushed && closed() && envelope.slot) answer(*envelope.slot, Message(), ReplySlot::kBroken);
  if (!pushed) throw_if_aborted(self);
}

Message Scheduler::await(ControlBlock& self, ReplySlot& slot) {
  await_until(self, slot, kNever);
  if (slot.state.load(std::memory_order_relaxed) == ReplySlot::kAnswered) return std::move(slot.answer);
  throw_if_aborted(self);
  throw std::runtime_error(full_name(block({slot.asked})) + " stopped before it answered " + slot.question);
}

bool Scheduler::await_until(ControlBlock& self, ReplySlot& slot, TimePoint until) {
  const auto ready = [&] { return slot.state.load(std::memory_order_acquire) != ReplySlot::kWaiting; };
  self.waits_on.store(slot.asked, std::memory_order_relaxed);
  self.waits_for.store(slot.question, std::memory_order_relaxed);
  const Wait why = until == kNever ? Wait::kReply : Wait::kReplyOrTime;
  while (!ready() && now() < until) {
    throw_if_aborted(self);
    block(self, why, until, ready);
  }
  const ReplySlot::State state = slot.state.load(std::memory_order_acquire);
  if (state == ReplySlot::kBroken) throw_if_aborted(self);
  return state == ReplySlot::kAnswered;
}

void Scheduler::answer(ReplySlot& slot, Message message, ReplySlot::State state) {
  ControlBlock& asker = slot.asker;
  slot.answer = std::move(message);
  slot.state.store(state, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const Wait waits = asker.waits.load(std::memory_order_relaxed);
  if (waits == Wait::kReply || waits == Wait::kReplyOrTime) unpark(asker);
}

void Scheduler::sleep(ControlBlock& self, TimePoint until) {
  do {
    throw_if_aborted(self);
    block(self, Wait::kTime, until, [] { return false; });
  } while (now() < until);
  throw_if_aborted(self);
}

void Scheduler::notify(ControlBlock& to) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const Wait waits = to.waits.load(std::memory_order_relaxed);
  if (waits == Wait::kMessage) unpark(to);
  if (waits == Wait::kStopped) drain(to);
}

// Wakes the senders that wait for space in this actor's mailbox. Called when the mailbox is half empty, not
// for each message, and before the actor blocks, so that no sender waits for long.
void Scheduler::wake_held(ControlBlock& self) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::lock_guard lock(self.held.mutex);
  for (ControlBlock* sender : self.held.blocks) {
    if (sender->waits.load(std::memory_order_relaxed) == Wait::kSpace) unpark(*sender);
  }
}

template <class Ready>
void Scheduler::block(ControlBlock& self, Wait why, TimePoint until, Ready ready) {
  self.waits.store(why, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (self.held.count.load(std::memory_order_relaxed) > 0 && self.mailbox.has_space()) wake_held(self);
  if (!ready() && !aborted(self)) park(self, until);
  self.waits.store(Wait::kNothing, std::memory_order_relaxed);
}

TimePoint ThreadScheduler::now() const { return std::chrono::steady_clock::now(); }

void ThreadScheduler::park(ControlBlock& self, TimePoint until) {
  if (until <= now()) {
    sched_yield();
  } else {
    self.parker.park(until, spin_);
  }
}

void ThreadScheduler::unpark(ControlBlock& block) { block.parker.unpark(); }

// The kernel rounds sleeps up by 50 us unless disabled.
void ThreadScheduler::enter(ControlBlock&) { prctl(PR_SET_TIMERSLACK, 1); }

void ThreadScheduler::begin() {
  if (usable_cores() < std::ssize(blocks_)) spin_ = Nanoseconds(0);
}

}  // namespace tutti

#include "runtime/actor/scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <utility>

#include "runtime/actor/cell.h"
#include "runtime/actor/signal_stack.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr Nanoseconds kStragglersNap = std::chrono::milliseconds(1);
constexpr Nanoseconds kAbortedWithin = std::chrono::seconds(1);

}  // namespace

struct Scheduler::State {
  bool began = false;
  Fate everybody;
  bool separate = false;
  std::map<int, Fate> ranks;  // when they are separate
  std::vector<std::string> left_behind;
};

Scheduler::Scheduler() : state_(std::make_unique<State>()) {}
Scheduler::~Scheduler() = default;

ActorId Scheduler::reserve(const std::string& name, int rank, int capacity) {
  TUTTI_ASSERT(!state_->began, "actors are reserved before the run");
  const ActorId id{static_cast<uint32_t>(cells_.size())};
  cells_.push_back(std::make_unique<Cell>(id, name, rank, capacity));
  cells_.back()->fate = state_->separate ? &state_->ranks[rank] : &state_->everybody;
  return id;
}

void Scheduler::separate_ranks() {
  TUTTI_ASSERT(cells_.empty(), "ranks are separated before actors are reserved");
  state_->separate = true;
}

void Scheduler::install(ActorId id, std::unique_ptr<Actor> actor) { cell(id).actor = std::move(actor); }

void Scheduler::may_hang(ActorId id, const std::string& called, Nanoseconds patience) {
  cell(id).called = called;
  cell(id).patience = patience;
}

const std::vector<std::string>& Scheduler::left_behind() const { return state_->left_behind; }

void Scheduler::record_deliveries(int rank, Recorder& recorder) {
  for (const auto& cell : cells_)
    if (cell->rank == rank) cell->recorder = &recorder;
}

Cell& Scheduler::cell(ActorId id) const {
  TUTTI_ASSERT(id.index < cells_.size(), "no such actor");
  return *cells_[id.index];
}

const std::string& Scheduler::name(ActorId id) const { return cell(id).name; }
int Scheduler::rank(ActorId id) const { return cell(id).rank; }
std::string Scheduler::full_name(const Cell& cell) const {
  return "rank " + std::to_string(cell.rank) + " " + cell.name;
}

std::string Scheduler::describe(const Cell& cell) const {
  const std::string who = full_name(cell);
  const uint32_t other = cell.waits_on.load(std::memory_order_relaxed);
  const std::string whom = other < cells_.size() ? full_name(*cells_[other]) : "";
  const std::string what = cell.waits_for.load(std::memory_order_relaxed);
  switch (cell.waits.load(std::memory_order_relaxed)) {
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

// The run.

void Scheduler::run() {
  TUTTI_ASSERT(!std::exchange(state_->began, true), "a scheduler runs once");
  for (const auto& cell : cells_)
    TUTTI_ASSERT(cell->actor, full_name(*cell) + " was reserved but not installed");
  begin();
  spawn();
  join();
  if (!aborted()) return;
  if (const auto failure = state_->everybody.failure()) std::rethrow_exception(failure);
  throw Aborted(state_->everybody.end());
}

void Scheduler::spawn() {
  for (const auto& cell : cells_) {
    try {
      cell->thread = std::thread([this, self = cell.get()] { run_actor(*self); });
    } catch (const std::system_error& error) {
      abort({EndKind::kOperatingError, "no thread for " + full_name(*cell) + ": " + error.what()});
      close(*cell);
      leave(*cell);
    }
  }
}

void Scheduler::join() {
  std::vector<Cell*> stragglers;
  for (const auto& cell : cells_) {
    if (!cell->thread.joinable()) continue;
    if (cell->patience && leaves_behind())
      stragglers.push_back(cell.get());
    else
      cell->thread.join();
  }
  const TimePoint since = now();
  while (!stragglers.empty()) {
    std::erase_if(stragglers, [&](Cell* one) { return is_done_with(*one, since); });
    if (!stragglers.empty()) std::this_thread::sleep_for(kStragglersNap);
  }
}

// It has ended, or is given up, however busy it is: other processes wait for this one, and the more so where
// the run was aborted.
bool Scheduler::is_done_with(Cell& cell, TimePoint others_ended) {
  if (cell.waits.load() == Wait::kStopped) {
    cell.thread.join();
    return true;
  }
  const Nanoseconds patience = aborted(cell) ? std::min(kAbortedWithin, *cell.patience) : *cell.patience;
  if (now() - others_ended < patience) return false;
  cell.left_behind = true;
  cell.thread.detach();
  state_->left_behind.push_back(cell.called);
  return true;
}

void Scheduler::run_actor(Cell& self) {
  const std::string name = std::to_string(self.rank) + "." + self.name;
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  const SignalStack of_handlers;
  enter(self);
  try {
    handle_messages(self);
  } catch (const RunError& error) {
    abort(*self.fate, {error.kind(), full_name(self) + ": " + error.what()}, std::current_exception());
  } catch (...) {
    abort(*self.fate, {EndKind::kProgramError, full_name(self) + ": " + handled_error()});
  }
  close(self);
  leave(self);
}

void Scheduler::handle_messages(Cell& self) {
  Context context(*this, self.id);
  if (!aborted(self)) self.actor->start(context);
  while (!self.stopping && !aborted(self) && !self.left_behind) {
    if (handle_next(self, context) || self.stopping) continue;
    const std::optional<TimePoint> until = self.actor->idle(context);
    if (!self.stopping)
      block(self, Wait::kMessage, until.value_or(kNever), [&] { return !self.mailbox.empty(); });
  }
}

bool Scheduler::handle_next(Cell& self, Context& context) {
  Envelope envelope;
  if (!take_next(self, envelope)) return false;
  if (aborted(self)) return true;
  self.actor->receive(context, envelope);
  TUTTI_ASSERT(!envelope.slot || aborted(self),
               full_name(self) + " left " + envelope.message.name() + " unanswered");
  return true;
}

bool Scheduler::take_next(Cell& self, Envelope& envelope) {
  if (!take(self, envelope)) return false;
  if (self.held.count.load(std::memory_order_relaxed) > 0 && self.mailbox.half_empty()) wake_held(self);
  deliver(self, envelope);
  if (!aborted(self) && self.recorder && !envelope.message.incidental()) record_delivery(self, envelope);
  return true;
}

bool Scheduler::take(Cell& self, Envelope& envelope) { return self.mailbox.pop(envelope); }

void Scheduler::record_delivery(Cell& self, const Envelope& envelope) const {
  const uint32_t from = envelope.from.index;
  self.recorder->delivered({now(), self.name, from < cells_.size() ? cells_[from]->name : std::string_view(),
                            envelope.message.label()});
}

void Scheduler::abort(const RankEnd& end) { abort(state_->everybody, end); }

void Scheduler::abort_rank(int rank, const RankEnd& end) { abort(state_->ranks.at(rank), end); }

void Scheduler::abort(Fate& fate, const RankEnd& end, std::exception_ptr failure) {
  if (!fate.abort(end, failure)) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const auto& cell : cells_)
    if (&fate == cell->fate || &fate == &state_->everybody) unpark(*cell);
}

bool Scheduler::aborted() const { return state_->everybody.aborted(); }

bool Scheduler::aborted(const Cell& cell) const { return cell.fate->aborted() || aborted(); }

const Fate& Scheduler::fate_of(int rank) const { return state_->ranks.at(rank); }

bool Scheduler::stopped(int rank) const {
  return std::all_of(cells_.begin(), cells_.end(), [rank](const auto& cell) {
    return cell->rank != rank || cell->waits.load() == Wait::kStopped;
  });
}

void Scheduler::throw_if_aborted(const Cell& self) const {
  if (aborted(self)) throw Aborted((aborted() ? state_->everybody : *self.fate).end());
}

// From here on nobody handles this actor's messages: what lies there is dropped, and so is what still comes.
void Scheduler::close(Cell& self) {
  self.waits.store(Wait::kStopped);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  drain(self);
  wake_held(self);
}

void Scheduler::drain(Cell& stopped) {
  const std::lock_guard lock(stopped.held.mutex);
  for (Envelope envelope; stopped.mailbox.pop(envelope);) {
    if (const ReplySlotPtr slot = std::move(envelope.slot)) answer(*slot, Message(), ReplySlot::kBroken);
  }
}

// Messages.

bool Scheduler::post(ActorId to, Message message) {
  Envelope envelope{ActorId{}, std::move(message), nullptr};
  if (!cell(to).mailbox.push(envelope)) return false;
  notify(cell(to));
  return true;
}

Envelope Scheduler::receive(Cell& self) {
  Envelope envelope;
  throw_if_aborted(self);
  while (!take_next(self, envelope)) {
    block(self, Wait::kMessage, kNever, [&] { return !self.mailbox.empty(); });
    throw_if_aborted(self);
  }
  throw_if_aborted(self);
  return envelope;
}

void Scheduler::send(Cell& self, ActorId id, Envelope envelope) {
  throw_if_aborted(self);
  Cell& to = cell(id);
  if (!to.mailbox.push(envelope)) {
    TUTTI_ASSERT(!envelope.message.reserved(), full_name(self) + " found no reserved place for " +
                                                   envelope.message.name() + " at " + full_name(to));
    TUTTI_ASSERT(&to != &self, full_name(self) + " filled its own mailbox");
    send_when_space(self, to, envelope);
  }
  notify(to);
}

void Scheduler::send_when_space(Cell& self, Cell& to, Envelope& envelope) {
  {
    const std::lock_guard lock(to.held.mutex);
    to.held.cells.push_back(&self);
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
    std::erase(to.held.cells, &self);
    to.held.count.fetch_sub(1);
  }
  if (!pushed && closed() && envelope.slot) answer(*envelope.slot, Message(), ReplySlot::kBroken);
  if (!pushed) throw_if_aborted(self);
}

Message Scheduler::await(Cell& self, ReplySlot& slot) {
  const auto ready = [&] { return slot.state.load(std::memory_order_acquire) != ReplySlot::kWaiting; };
  self.waits_on.store(slot.asked, std::memory_order_relaxed);
  self.waits_for.store(slot.question, std::memory_order_relaxed);
  while (!ready()) {
    throw_if_aborted(self);
    block(self, Wait::kReply, kNever, ready);
  }
  if (slot.state.load(std::memory_order_relaxed) == ReplySlot::kAnswered) return std::move(slot.answer);
  throw_if_aborted(self);
  throw std::runtime_error(full_name(cell({slot.asked})) + " stopped before it answered " + slot.question);
}

bool Scheduler::await_until(Cell& self, ReplySlot& slot, TimePoint until) {
  const auto ready = [&] { return slot.state.load(std::memory_order_acquire) != ReplySlot::kWaiting; };
  self.waits_on.store(slot.asked, std::memory_order_relaxed);
  self.waits_for.store(slot.question, std::memory_order_relaxed);
  while (!ready() && now() < until) {
    throw_if_aborted(self);
    block(self, Wait::kReplyOrTime, until, ready);
  }
  return ready();
}

void Scheduler::answer(ReplySlot& slot, Message message, ReplySlot::State state) {
  Cell& asker = slot.asker;
  slot.answer = std::move(message);
  slot.state.store(state, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const Wait waits = asker.waits.load(std::memory_order_relaxed);
  if (waits == Wait::kReply || waits == Wait::kReplyOrTime) unpark(asker);
}

void Scheduler::sleep(Cell& self, TimePoint until) {
  do {
    throw_if_aborted(self);
    block(self, Wait::kTime, until, [] { return false; });
  } while (now() < until);
  throw_if_aborted(self);
}

void Scheduler::notify(Cell& to) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const Wait waits = to.waits.load(std::memory_order_relaxed);
  if (waits == Wait::kMessage) unpark(to);
  if (waits == Wait::kStopped) drain(to);
}

// Wakes the senders that this actor's mailbox holds back. Called when it is half empty, so that a fast sender
// is not woken for every single place, and before this actor blocks, so that nobody waits for it longer than
// needed.
void Scheduler::wake_held(Cell& self) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::lock_guard lock(self.held.mutex);
  for (Cell* sender : self.held.cells) {
    if (sender->waits.load(std::memory_order_relaxed) == Wait::kSpace) unpark(*sender);
  }
}

template <class Ready>
void Scheduler::block(Cell& self, Wait why, TimePoint until, Ready ready) {
  self.waits.store(why, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (self.held.count.load(std::memory_order_relaxed) > 0 && self.mailbox.has_space()) wake_held(self);
  if (!ready() && !aborted(self)) park(self, until);
  self.waits.store(Wait::kNothing, std::memory_order_relaxed);
}

}  // namespace tutti

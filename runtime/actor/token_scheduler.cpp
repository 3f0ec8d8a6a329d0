#include "runtime/actor/token_scheduler.h"

#include <sched.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/actor/control_block.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr Nanoseconds kPollStep = std::chrono::microseconds(1);
constexpr uint64_t kRoundsPerDoubling = 64;
constexpr uint64_t kMaxDoublings = 10;  // up to about a millisecond a turn

void pin_to(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

}  // namespace

TokenScheduler::TokenScheduler(Options options)
    : options_(std::move(options)), draw_(options_.seed, "baton"), deliveries_(0, "deliveries") {}

TokenScheduler::~TokenScheduler() = default;

TimePoint TokenScheduler::now() const {
  if (options_.pace == Pace::kReal) return std::chrono::steady_clock::now();
  return TimePoint(Nanoseconds(now_.load(std::memory_order_relaxed)));
}

void TokenScheduler::begin() {
  {
    const std::lock_guard lock(mutex_);
    states_.resize(blocks_.size());
    held_back_.resize(blocks_.size());
  }
  if (options_.script) wake_first();
  std::unique_lock lock(mutex_);
  if (!states_.empty()) holder_ = choose(lock);
  if (options_.pin_to_one_core) core_ = sched_getcpu();
}

void TokenScheduler::enter(ControlBlock& self) {
  if (core_ >= 0) pin_to(core_);
  wait_for_run_token(self);
}

void TokenScheduler::leave(ControlBlock& self) {
  {
    const std::lock_guard lock(mutex_);
    states_[self.id.index].phase = Phase::kGone;
    if (holder_ != self.id.index) return;
  }
  pass_run_token();
}

void TokenScheduler::park(ControlBlock& self, TimePoint until) {
  if (self.waits == Wait::kMessage) until = wake_time(self, until);
  yield(self, until <= now() ? Phase::kPolling : Phase::kParked, until);
}

TimePoint TokenScheduler::wake_time(const ControlBlock& self, TimePoint until) const {
  if (self.id.index >= states_.size()) return until;
  const ActorState& state = states_[self.id.index];
  if (state.poll_interval > Nanoseconds(0)) until = std::max(until, now() + state.poll_interval);
  return state.alarms.empty() ? until : std::min(until, *state.alarms.begin());
}

void TokenScheduler::set_poll_interval(ActorId actor, Nanoseconds interval) {
  const std::lock_guard lock(mutex_);
  if (states_.size() <= actor.index) states_.resize(actor.index + 1);
  states_[actor.index].poll_interval = interval;
}

void TokenScheduler::wake_at(ActorId actor, TimePoint time) {
  const std::lock_guard lock(mutex_);
  ActorState& state = states_[actor.index];
  state.alarms.insert(time);
  if (state.phase != Phase::kParked || blocks_[actor.index]->waits != Wait::kMessage) return;
  state.until = std::min(state.until, time);
  if (state.until <= now()) state.phase = Phase::kReady;
}

void TokenScheduler::suspend(int rank, TimePoint until) {
  const std::lock_guard lock(mutex_);
  if (states_.size() < blocks_.size()) states_.resize(blocks_.size());
  for (const auto& block : blocks_) {
    if (block->rank != rank) continue;
    ActorState& state = states_[block->id.index];
    state.suspended = until > now();
    state.suspended_until = until;
  }
}

void TokenScheduler::spend(Nanoseconds duration) {
  ControlBlock& self = *blocks_[holder_];
  const TimePoint until = now() + duration;
  do yield(self, Phase::kParked, until);
  while (now() < until && !aborted(self));
  throw_if_aborted(self);
}

void TokenScheduler::unpark(ControlBlock& block) {
  const std::lock_guard lock(mutex_);
  if (states_.empty()) return;
  ActorState& state = states_[block.id.index];
  idle_polls_ = 0;
  if (state.phase == Phase::kReady) {
    state.notified = true;
  } else if (state.phase != Phase::kGone) {
    state.phase = Phase::kReady;
    changed_.notify_one();
  }
}

void TokenScheduler::deliver(ControlBlock& self, const Envelope& envelope) {
  yield(self, Phase::kReady, kNever);
  const uint64_t message = RandomKey(envelope.from.index, envelope.message.label()).bits();
  deliveries_ = deliveries_.fold_in(self.id.index).fold_in(message);
}

bool TokenScheduler::take(ControlBlock& self, Envelope& envelope) {
  if (!options_.script) return Scheduler::take(self, envelope);
  auto& waiting = held_back_[self.id.index];
  for (Envelope incoming; Scheduler::take(self, incoming);) waiting.push_back(std::move(incoming));
  // Unscripted messages come first: an actor needs its Join before all others.
  auto next = std::find_if(waiting.begin(), waiting.end(),
                           [&](const Envelope& candidate) { return is_unscripted(self, candidate); });
  if (next == waiting.end())
    next = std::find_if(waiting.begin(), waiting.end(),
                        [&](const Envelope& candidate) { return is_next(self, candidate); });
  if (next == waiting.end()) return false;
  envelope = std::move(*next);
  waiting.erase(next);
  if (is_unscripted(self, envelope)) return true;
  last_scripted_ = now();
  options_.script->advance(self.rank);
  wake_next(self.rank);
  return true;
}

bool TokenScheduler::is_unscripted(const ControlBlock& self, const Envelope& envelope) const {
  return envelope.message.incidental() || options_.script->is_unrecorded(self.rank, envelope.message.label());
}

bool TokenScheduler::is_next(const ControlBlock& self, const Envelope& envelope) const {
  const DeliveryScript::Line* next = options_.script->next(self.rank);
  if (!next || next->to != self.name || next->message != envelope.message.label()) return false;
  const uint32_t from = envelope.from.index;
  return from < blocks_.size() ? next->from == blocks_[from]->name : next->from.empty();
}

void TokenScheduler::wake_first() {
  std::set<int> ranks;
  for (const auto& block : blocks_) ranks.insert(block->rank);
  for (const int rank : ranks) wake_next(rank);
}

void TokenScheduler::wake_next(int rank) {
  const DeliveryScript::Line* next = options_.script->next(rank);
  if (!next) return;
  for (const auto& block : blocks_) {
    if (block->rank != rank || block->name != next->to) continue;
    if (auto message = options_.script->from_outside(rank)) {
      const ActorId from = next->from.empty() ? ActorId{} : block->id;
      held_back_[block->id.index].push_back({from, std::move(*message), nullptr});
    }
    unpark(*block);
  }
}

void TokenScheduler::yield(ControlBlock& self, Phase phase, TimePoint until) {
  {
    const std::lock_guard lock(mutex_);
    ActorState& state = states_[self.id.index];
    state.phase = std::exchange(state.notified, false) ? Phase::kReady : phase;
    state.until = until;
  }
  const std::string reason = aborted(self) ? "" : abort_reason(self);
  if (!reason.empty()) abort({EndKind::kStuck, reason});
  pass_run_token();
  wait_for_run_token(self);
}

void TokenScheduler::pass_run_token() {
  uint32_t next = kNone;
  std::string reason;
  {
    std::unique_lock lock(mutex_);
    next = choose(lock);
    if (next == kNone && any_in(Phase::kParked)) reason = "deadlock: " + blocked_actors();
  }
  if (!reason.empty()) {
    abort({EndKind::kStuck, reason});
    return pass_run_token();
  }
  holder_ = next;
  if (next != kNone) blocks_[next]->parker.unpark();
}

void TokenScheduler::wait_for_run_token(ControlBlock& self) {
  while (holder_ != self.id.index) self.parker.park(kNever, Nanoseconds(0));
  const int before = std::exchange(rank_, self.rank);
  {
    const std::lock_guard lock(mutex_);
    ActorState& state = states_[self.id.index];
    state.phase = Phase::kReady;
    state.alarms.erase(state.alarms.begin(), state.alarms.upper_bound(now()));
  }
  if (before != self.rank && options_.on_switch) options_.on_switch(self.rank);
}

// Lets time pass until an actor can run and draws one of those; kNone if no actor will ever run.
uint32_t TokenScheduler::choose(std::unique_lock<std::mutex>& lock) {
  if (options_.pace == Pace::kReal) advance(now());
  while (!any_in(Phase::kReady)) {
    const bool polling = any_in(Phase::kPolling);
    const TimePoint next = std::min(next_deadline(), polling ? next_poll() : kNever);
    if (next == kNever) return kNone;
    pass_time(lock, next);
    if (polling) break;
  }
  return draw();
}

void TokenScheduler::pass_time(std::unique_lock<std::mutex>& lock, TimePoint until) {
  if (options_.pace == Pace::kReal) {
    changed_.wait_until(lock, until, [this] { return any_in(Phase::kReady); });
    until = now();
  }
  advance(until);
}

uint32_t TokenScheduler::draw() {
  const auto can_run = [](const ActorState& state) {
    return !state.suspended && (state.phase == Phase::kReady || state.phase == Phase::kPolling);
  };
  const auto count = static_cast<uint64_t>(std::count_if(states_.begin(), states_.end(), can_run));
  uint64_t skip = draw_.below(count, passes_++);
  uint32_t drawn = 0;
  while (!can_run(states_[drawn]) || skip-- > 0) ++drawn;
  return drawn;
}

bool TokenScheduler::any_in(Phase phase) const {
  return std::any_of(states_.begin(), states_.end(),
                     [&](const ActorState& state) { return state.phase == phase && !state.suspended; });
}

void TokenScheduler::advance(TimePoint to) {
  if (options_.pace == Pace::kSimulated) now_ = to.time_since_epoch().count();
  for (ActorState& state : states_) {
    if (state.phase == Phase::kParked && state.until <= to) state.phase = Phase::kReady;
    if (state.suspended && state.suspended_until <= to) state.suspended = false;
  }
}

TimePoint TokenScheduler::next_deadline() const {
  TimePoint earliest = kNever;
  for (const ActorState& state : states_) {
    const bool parked = state.phase == Phase::kParked;
    if (state.phase == Phase::kGone || !(parked || state.suspended)) continue;
    const TimePoint until = parked ? state.until : TimePoint{};
    earliest = std::min(earliest, state.suspended ? std::max(until, state.suspended_until) : until);
  }
  return earliest;
}

TimePoint TokenScheduler::next_poll() {
  const uint64_t rounds = idle_polls_++ / states_.size();
  const uint64_t doublings = std::min(rounds / kRoundsPerDoubling, kMaxDoublings);
  return now() + kPollStep * (1 << doublings);
}

std::string TokenScheduler::abort_reason(const ControlBlock& self) {
  if (now() >= options_.time_limit) return "the simulation reached its time limit: " + blocked_actors();
  if (options_.script && now() - last_scripted_ > kScriptTimeout)
    return "the run does not reach the next delivery of its record";
  const std::lock_guard lock(mutex_);
  const auto cycle = wait_cycle(self);
  if (cycle.empty()) return "";
  const bool senders = std::all_of(cycle.begin(), cycle.end(),
                                   [](const ControlBlock* block) { return block->waits == Wait::kSpace; });
  if (!senders) return "actors wait for each other: " + blocked_actors();
  for (const ControlBlock* block : cycle)
    blocked_senders_ += (blocked_senders_.empty() ? "" : "; ") + describe(*block);
  return "full mailboxes block each other: " + blocked_actors();
}

// The actors of a cycle of waits for mailboxes or replies through this one; empty if there is none.
std::vector<const ControlBlock*> TokenScheduler::wait_cycle(const ControlBlock& self) const {
  std::vector<const ControlBlock*> cycle;
  const ControlBlock* block = &self;
  while (cycle.size() < blocks_.size()) {
    const Wait waits = block->waits;
    const bool blocked =
        (waits == Wait::kSpace || waits == Wait::kReply) && states_[block->id.index].phase == Phase::kParked;
    if (!blocked) return {};
    cycle.push_back(block);
    block = blocks_[block->waits_on].get();
    if (block == &self) return cycle;
  }
  return {};
}

std::string TokenScheduler::blocked_actors() const {
  std::string all;
  for (const auto& block : blocks_) {
    if (block->waits == Wait::kStopped) continue;
    all += (all.empty() ? "" : "; ") + describe(*block);
  }
  return all;
}

}  // namespace tutti

#include "sim/environment/sim_scheduler.h"

#include <sched.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/actor/control_block.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr Nanoseconds kPollStep = std::chrono::microseconds(1);
constexpr uint64_t kRoundsAtOneSpeed = 64;
constexpr uint64_t kMostDoublings = 10;  // at most a millisecond a turn

void pin_to(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

}  // namespace

SimScheduler::SimScheduler(Options options)
    : options_(std::move(options)), draw_(options_.seed, "baton"), deliveries_(0, "deliveries") {}

SimScheduler::~SimScheduler() = default;

TimePoint SimScheduler::now() const {
  if (options_.pace == Pace::kReal) return std::chrono::steady_clock::now();
  return TimePoint(Nanoseconds(now_.load(std::memory_order_relaxed)));
}

void SimScheduler::begin() {
  {
    const std::lock_guard lock(mutex_);
    states_.resize(blocks_.size());
    waiting_.resize(blocks_.size());
  }
  if (options_.script) wake_first();
  std::unique_lock lock(mutex_);
  if (!states_.empty()) holder_ = choose(lock);
  if (options_.pin_to_one_core) core_ = sched_getcpu();
}

void SimScheduler::enter(ControlBlock& self) {
  if (core_ >= 0) pin_to(core_);
  wait_for_run_token(self);
}

void SimScheduler::leave(ControlBlock& self) {
  {
    const std::lock_guard lock(mutex_);
    states_[self.id.index].phase = Phase::kGone;
    if (holder_ != self.id.index) return;
  }
  pass_run_token();
}

void SimScheduler::park(ControlBlock& self, TimePoint until) {
  if (self.waits == Wait::kMessage) until = next_poll_of(self, until);
  yield(self, until <= now() ? Phase::kPolling : Phase::kParked, until);
}

TimePoint SimScheduler::next_poll_of(const ControlBlock& self, TimePoint until) const {
  if (self.id.index >= states_.size()) return until;
  const ActorState& state = states_[self.id.index];
  if (state.poll_interval > Nanoseconds(0)) until = std::max(until, now() + state.poll_interval);
  return state.alarms.empty() ? until : std::min(until, *state.alarms.begin());
}

void SimScheduler::set_poll_interval(ActorId actor, Nanoseconds at_most_every) {
  const std::lock_guard lock(mutex_);
  if (states_.size() <= actor.index) states_.resize(actor.index + 1);
  states_[actor.index].poll_interval = at_most_every;
}

void SimScheduler::wake_at(ActorId actor, TimePoint time) {
  const std::lock_guard lock(mutex_);
  ActorState& state = states_[actor.index];
  state.alarms.insert(time);
  if (state.phase != Phase::kParked || blocks_[actor.index]->waits != Wait::kMessage) return;
  state.until = std::min(state.until, time);
  if (state.until <= now()) state.phase = Phase::kAble;
}

void SimScheduler::spend(Nanoseconds duration) {
  ControlBlock& self = *blocks_[holder_];
  const TimePoint until = now() + duration;
  do yield(self, Phase::kParked, until);
  while (now() < until && !aborted(self));
  throw_if_aborted(self);
}

void SimScheduler::unpark(ControlBlock& block) {
  const std::lock_guard lock(mutex_);
  if (states_.empty()) return;
  ActorState& state = states_[block.id.index];
  fruitless_polls_ = 0;
  if (state.phase == Phase::kAble) {
    state.notified = true;
  } else if (state.phase != Phase::kGone) {
    state.phase = Phase::kAble;
    changed_.notify_one();
  }
}

void SimScheduler::deliver(ControlBlock& self, const Envelope& envelope) {
  yield(self, Phase::kAble, kNever);
  const uint64_t what = RandomKey(envelope.from.index, envelope.message.label()).bits();
  deliveries_ = deliveries_.fold_in(self.id.index).fold_in(what);
}

bool SimScheduler::take(ControlBlock& self, Envelope& envelope) {
  if (!options_.script) return Scheduler::take(self, envelope);
  auto& waiting = waiting_[self.id.index];
  for (Envelope come; Scheduler::take(self, come);) waiting.push_back(std::move(come));
  const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const Envelope& one) {
    return one.message.incidental() || is_next(self, one);
  });
  if (found == waiting.end()) return false;
  envelope = std::move(*found);
  waiting.erase(found);
  if (envelope.message.incidental()) return true;
  last_taken_ = now();
  options_.script->taken(self.rank);
  wake_next(self.rank);
  return true;
}

bool SimScheduler::is_next(const ControlBlock& self, const Envelope& envelope) const {
  const DeliveryScript::Line* next = options_.script->next(self.rank);
  if (!next || next->to != self.name || next->message != envelope.message.label()) return false;
  const uint32_t from = envelope.from.index;
  return from < blocks_.size() ? next->from == blocks_[from]->name : next->from.empty();
}

void SimScheduler::wake_first() {
  std::set<int> ranks;
  for (const auto& block : blocks_) ranks.insert(block->rank);
  for (const int rank : ranks) wake_next(rank);
}

void SimScheduler::wake_next(int rank) {
  const DeliveryScript::Line* next = options_.script->next(rank);
  if (!next) return;
  for (const auto& block : blocks_) {
    if (block->rank != rank || block->name != next->to) continue;
    if (auto message = options_.script->from_outside(rank)) {
      const ActorId from = next->from.empty() ? ActorId{} : block->id;
      waiting_[block->id.index].push_back({from, std::move(*message), nullptr});
    }
    unpark(*block);
  }
}

void SimScheduler::yield(ControlBlock& self, Phase phase, TimePoint until) {
  {
    const std::lock_guard lock(mutex_);
    ActorState& state = states_[self.id.index];
    state.phase = std::exchange(state.notified, false) ? Phase::kAble : phase;
    state.until = until;
  }
  const std::string reason = aborted(self) ? "" : trouble(self);
  if (!reason.empty()) abort(reason);
  pass_run_token();
  wait_for_run_token(self);
}

void SimScheduler::pass_run_token() {
  uint32_t next = kNobody;
  std::string reason;
  {
    std::unique_lock lock(mutex_);
    next = choose(lock);
    if (next == kNobody && anybody(Phase::kParked)) reason = "deadlock: " + waiting();
  }
  if (!reason.empty()) {
    abort(reason);
    return pass_run_token();
  }
  holder_ = next;
  if (next != kNobody) blocks_[next]->parker.unpark();
}

void SimScheduler::wait_for_run_token(ControlBlock& self) {
  while (holder_ != self.id.index) self.parker.park(kNever, Nanoseconds(0));
  const int before = std::exchange(rank_, self.rank);
  {
    const std::lock_guard lock(mutex_);
    ActorState& state = states_[self.id.index];
    state.phase = Phase::kAble;
    state.alarms.erase(state.alarms.begin(), state.alarms.upper_bound(now()));
  }
  if (before != self.rank && options_.on_switch) options_.on_switch(self.rank);
}

// Lets time pass until somebody can run, and draws one of them; kNobody when nobody ever will.
uint32_t SimScheduler::choose(std::unique_lock<std::mutex>& lock) {
  if (options_.pace == Pace::kReal) advance(now());
  while (!anybody(Phase::kAble)) {
    const bool polling = anybody(Phase::kPolling);
    const TimePoint next = std::min(next_deadline(), polling ? next_poll() : kNever);
    if (next == kNever) return kNobody;
    pass_time(lock, next);
    if (polling) break;
  }
  return draw();
}

void SimScheduler::pass_time(std::unique_lock<std::mutex>& lock, TimePoint until) {
  if (options_.pace == Pace::kReal) {
    changed_.wait_until(lock, until, [this] { return anybody(Phase::kAble); });
    until = now();
  }
  advance(until);
}

uint32_t SimScheduler::draw() {
  const auto able = [](const ActorState& state) {
    return state.phase == Phase::kAble || state.phase == Phase::kPolling;
  };
  const auto count = static_cast<uint64_t>(std::count_if(states_.begin(), states_.end(), able));
  uint64_t left = draw_.below(count, passes_++);
  uint32_t drawn = 0;
  while (!able(states_[drawn]) || left-- > 0) ++drawn;
  return drawn;
}

bool SimScheduler::anybody(Phase phase) const {
  return std::any_of(states_.begin(), states_.end(),
                     [&](const ActorState& state) { return state.phase == phase; });
}

void SimScheduler::advance(TimePoint to) {
  if (options_.pace == Pace::kMadeUp) now_ = to.time_since_epoch().count();
  for (ActorState& state : states_) {
    if (state.phase == Phase::kParked && state.until <= to) state.phase = Phase::kAble;
  }
}

TimePoint SimScheduler::next_deadline() const {
  TimePoint earliest = kNever;
  for (const ActorState& state : states_) {
    if (state.phase == Phase::kParked) earliest = std::min(earliest, state.until);
  }
  return earliest;
}

TimePoint SimScheduler::next_poll() {
  const uint64_t rounds = fruitless_polls_++ / states_.size();
  const uint64_t doublings = std::min(rounds / kRoundsAtOneSpeed, kMostDoublings);
  return now() + kPollStep * (1 << doublings);
}

std::string SimScheduler::trouble(const ControlBlock& self) {
  if (now() >= options_.time_limit) return "the simulation reached its time limit: " + waiting();
  if (options_.script && now() - last_taken_ > kScriptTimeout)
    return "the run does not come to the next line of its record";
  const std::lock_guard lock(mutex_);
  const auto circle = circle_of(self);
  if (circle.empty()) return "";
  const bool senders = std::all_of(circle.begin(), circle.end(),
                                   [](const ControlBlock* block) { return block->waits == Wait::kSpace; });
  if (!senders) return "actors wait for each other: " + waiting();
  for (const ControlBlock* block : circle)
    blocked_senders_ += (blocked_senders_.empty() ? "" : "; ") + describe(*block);
  return "full mailboxes block each other: " + waiting();
}

// Whether this actor waits for one (its space, its answer) that waits for one ... that waits for this one:
// none of them will ever take a message again. Empty: it does not.
std::vector<const ControlBlock*> SimScheduler::circle_of(const ControlBlock& self) const {
  std::vector<const ControlBlock*> circle;
  const ControlBlock* block = &self;
  while (circle.size() < blocks_.size()) {
    const Wait waits = block->waits;
    const bool held =
        (waits == Wait::kSpace || waits == Wait::kReply) && states_[block->id.index].phase == Phase::kParked;
    if (!held) return {};
    circle.push_back(block);
    block = blocks_[block->waits_on].get();
    if (block == &self) return circle;
  }
  return {};
}

std::string SimScheduler::waiting() const {
  std::string all;
  for (const auto& block : blocks_) {
    if (block->waits == Wait::kStopped) continue;
    all += (all.empty() ? "" : "; ") + describe(*block);
  }
  return all;
}

}  // namespace tutti

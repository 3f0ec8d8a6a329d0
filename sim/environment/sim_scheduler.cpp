#include "sim/environment/sim_scheduler.h"

#include <sched.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/actor/cell.h"
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
    seats_.resize(cells_.size());
    waiting_.resize(cells_.size());
  }
  if (options_.script) wake_first();
  std::unique_lock lock(mutex_);
  if (!seats_.empty()) holder_ = choose(lock);
  if (options_.pin_to_one_core) core_ = sched_getcpu();
}

void SimScheduler::enter(Cell& self) {
  if (core_ >= 0) pin_to(core_);
  wait_for_baton(self);
}

void SimScheduler::leave(Cell& self) {
  {
    const std::lock_guard lock(mutex_);
    seats_[self.id.index].phase = Phase::kGone;
    if (holder_ != self.id.index) return;
  }
  pass_baton();
}

void SimScheduler::park(Cell& self, TimePoint until) {
  if (self.waits == Wait::kMessage) until = end_of_nap(self, until);
  yield(self, until <= now() ? Phase::kPolling : Phase::kParked, until);
}

TimePoint SimScheduler::end_of_nap(const Cell& self, TimePoint until) const {
  if (self.id.index >= seats_.size()) return until;
  const Seat& seat = seats_[self.id.index];
  if (seat.nap > Nanoseconds(0)) until = std::max(until, now() + seat.nap);
  return seat.alarms.empty() ? until : std::min(until, *seat.alarms.begin());
}

void SimScheduler::look_rarely(ActorId actor, Nanoseconds at_most_every) {
  const std::lock_guard lock(mutex_);
  if (seats_.size() <= actor.index) seats_.resize(actor.index + 1);
  seats_[actor.index].nap = at_most_every;
}

void SimScheduler::wake_at(ActorId actor, TimePoint time) {
  const std::lock_guard lock(mutex_);
  Seat& seat = seats_[actor.index];
  seat.alarms.insert(time);
  if (seat.phase != Phase::kParked || cells_[actor.index]->waits != Wait::kMessage) return;
  seat.until = std::min(seat.until, time);
  if (seat.until <= now()) seat.phase = Phase::kAble;
}

void SimScheduler::spend(Nanoseconds duration) {
  Cell& self = *cells_[holder_];
  const TimePoint until = now() + duration;
  do yield(self, Phase::kParked, until);
  while (now() < until && !aborted(self));
  throw_if_aborted(self);
}

void SimScheduler::unpark(Cell& cell) {
  const std::lock_guard lock(mutex_);
  if (seats_.empty()) return;
  Seat& seat = seats_[cell.id.index];
  fruitless_polls_ = 0;
  if (seat.phase == Phase::kAble) {
    seat.notified = true;
  } else if (seat.phase != Phase::kGone) {
    seat.phase = Phase::kAble;
    changed_.notify_one();
  }
}

void SimScheduler::deliver(Cell& self, const Envelope& envelope) {
  yield(self, Phase::kAble, kNever);
  const uint64_t what = Draw(envelope.from.index, envelope.message.label()).bits();
  deliveries_ = deliveries_.at(self.id.index).at(what);
}

bool SimScheduler::take(Cell& self, Envelope& envelope) {
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

bool SimScheduler::is_next(const Cell& self, const Envelope& envelope) const {
  const DeliveryScript::Line* next = options_.script->next(self.rank);
  if (!next || next->to != self.name || next->message != envelope.message.label()) return false;
  const uint32_t from = envelope.from.index;
  return from < cells_.size() ? next->from == cells_[from]->name : next->from.empty();
}

void SimScheduler::wake_first() {
  std::set<int> ranks;
  for (const auto& cell : cells_) ranks.insert(cell->rank);
  for (const int rank : ranks) wake_next(rank);
}

void SimScheduler::wake_next(int rank) {
  const DeliveryScript::Line* next = options_.script->next(rank);
  if (!next) return;
  for (const auto& cell : cells_) {
    if (cell->rank != rank || cell->name != next->to) continue;
    if (auto message = options_.script->from_outside(rank)) {
      const ActorId from = next->from.empty() ? ActorId{} : cell->id;
      waiting_[cell->id.index].push_back({from, std::move(*message), nullptr});
    }
    unpark(*cell);
  }
}

void SimScheduler::yield(Cell& self, Phase phase, TimePoint until) {
  {
    const std::lock_guard lock(mutex_);
    Seat& seat = seats_[self.id.index];
    seat.phase = std::exchange(seat.notified, false) ? Phase::kAble : phase;
    seat.until = until;
  }
  const std::string reason = aborted(self) ? "" : trouble(self);
  if (!reason.empty()) abort({EndKind::kStuck, reason});
  pass_baton();
  wait_for_baton(self);
}

void SimScheduler::pass_baton() {
  uint32_t next = kNobody;
  std::string reason;
  {
    std::unique_lock lock(mutex_);
    next = choose(lock);
    if (next == kNobody && anybody(Phase::kParked)) reason = "deadlock: " + waiting();
  }
  if (!reason.empty()) {
    abort({EndKind::kStuck, reason});
    return pass_baton();
  }
  holder_ = next;
  if (next != kNobody) cells_[next]->parker.unpark();
}

void SimScheduler::wait_for_baton(Cell& self) {
  while (holder_ != self.id.index) self.parker.park(kNever, Nanoseconds(0));
  const int before = std::exchange(rank_, self.rank);
  {
    const std::lock_guard lock(mutex_);
    Seat& seat = seats_[self.id.index];
    seat.phase = Phase::kAble;
    seat.alarms.erase(seat.alarms.begin(), seat.alarms.upper_bound(now()));
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
  const auto able = [](const Seat& seat) {
    return seat.phase == Phase::kAble || seat.phase == Phase::kPolling;
  };
  const auto count = static_cast<uint64_t>(std::count_if(seats_.begin(), seats_.end(), able));
  uint64_t left = draw_.below(count, passes_++);
  uint32_t drawn = 0;
  while (!able(seats_[drawn]) || left-- > 0) ++drawn;
  return drawn;
}

bool SimScheduler::anybody(Phase phase) const {
  return std::any_of(seats_.begin(), seats_.end(), [&](const Seat& seat) { return seat.phase == phase; });
}

void SimScheduler::advance(TimePoint to) {
  if (options_.pace == Pace::kMadeUp) now_ = to.time_since_epoch().count();
  for (Seat& seat : seats_) {
    if (seat.phase == Phase::kParked && seat.until <= to) seat.phase = Phase::kAble;
  }
}

TimePoint SimScheduler::next_deadline() const {
  TimePoint earliest = kNever;
  for (const Seat& seat : seats_) {
    if (seat.phase == Phase::kParked) earliest = std::min(earliest, seat.until);
  }
  return earliest;
}

TimePoint SimScheduler::next_poll() {
  const uint64_t rounds = fruitless_polls_++ / seats_.size();
  const uint64_t doublings = std::min(rounds / kRoundsAtOneSpeed, kMostDoublings);
  return now() + kPollStep * (1 << doublings);
}

std::string SimScheduler::trouble(const Cell& self) {
  if (now() >= options_.time_limit) return "the simulation reached its time limit: " + waiting();
  if (options_.script && now() - last_taken_ > kScriptPatience)
    return "the run does not come to the next line of its record";
  const std::lock_guard lock(mutex_);
  const auto circle = circle_of(self);
  if (circle.empty()) return "";
  const bool senders =
      std::all_of(circle.begin(), circle.end(), [](const Cell* cell) { return cell->waits == Wait::kSpace; });
  if (!senders) return "actors wait for each other: " + waiting();
  for (const Cell* cell : circle)
    blocked_senders_ += (blocked_senders_.empty() ? "" : "; ") + describe(*cell);
  return "full mailboxes block each other: " + waiting();
}

// Whether this actor waits for one (its space, its answer) that waits for one ... that waits for this one:
// none of them will ever take a message again. Empty: it does not.
std::vector<const Cell*> SimScheduler::circle_of(const Cell& self) const {
  std::vector<const Cell*> circle;
  const Cell* cell = &self;
  while (circle.size() < cells_.size()) {
    const Wait waits = cell->waits;
    const bool held =
        (waits == Wait::kSpace || waits == Wait::kReply) && seats_[cell->id.index].phase == Phase::kParked;
    if (!held) return {};
    circle.push_back(cell);
    cell = cells_[cell->waits_on].get();
    if (cell == &self) return circle;
  }
  return {};
}

std::string SimScheduler::waiting() const {
  std::string all;
  for (const auto& cell : cells_) {
    if (cell->waits == Wait::kStopped) continue;
    all += (all.empty() ? "" : "; ") + describe(*cell);
  }
  return all;
}

}  // namespace tutti

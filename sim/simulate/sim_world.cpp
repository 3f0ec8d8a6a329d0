#include "sim/simulate/sim_world.h"

#include <algorithm>
#include <utility>

#include "actors/messages/heartbeat.h"
#include "collectives/device/groups.h"
#include "io/checkpoint/tensor_source.h"
#include "job/records/run_journal.h"
#include "runtime/actor/stop_token.h"
#include "runtime/error.h"
#include "sim/environment/sim_recorder.h"
#include "sim/faults/failing_memory.h"
#include "sim/faults/link_faults.h"
#include "tensors/memory/meter.h"

namespace tutti {
namespace {

constexpr const char* kBudgetLabel = "memory_budget";
constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(100);
constexpr uint64_t kMeanStepUs = 20'000;
constexpr uint64_t kMaxDiskCallUs = 500;
constexpr Nanoseconds kLauncherPolls = std::chrono::milliseconds(20);
constexpr Nanoseconds kGracePeriod = std::chrono::seconds(1);

uint64_t digest_of(const Trainee& trainee) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& view : trainee.views) tensors["model/" + view.name] = view.tensor;
  for (const auto& named : trainee.buffers) tensors["model/" + named.name] = named.buffer->tensor;
  return tensors_digest(MemoryTensors(tensors));
}

SimDisk::WriteOutcome outcome_of_write(FaultKind kind) {
  switch (kind) {
    case FaultKind::kDiskFull:
      return SimDisk::WriteOutcome::kFull;
    case FaultKind::kWriteError:
      return SimDisk::WriteOutcome::kFails;
    case FaultKind::kLostWrite:
      return SimDisk::WriteOutcome::kLost;
    default:
      return SimDisk::WriteOutcome::kTorn;
  }
}

// The scheduler's time, and a wall clock that may jump.
class RankClock final : public Clock {
 public:
  RankClock(const Scheduler& scheduler, const int64_t& jumped_ms)
      : clock_(scheduler), jumped_ms_(jumped_ms) {}
  TimePoint now() const override { return clock_.now(); }
  int64_t unix_ms() const override { return clock_.unix_ms() + jumped_ms_; }

 private:
  SimClock clock_;
  const int64_t& jumped_ms_;
};

}  // namespace

// A simulated rank and its progress.
struct SimWorld::Rank {
  explicit Rank(int rank) : memory(rank) {}
  RankEnvironment environment;
  RankActors actors;
  const Trainee* trainee = nullptr;  // null before the first step
  int64_t step = 0;                  // current, from 1
  int microbatches = 0;              // of the current try of the step
  bool done = false;                 // training has ended or was stopped
  int64_t clock_jumped_ms = 0;
  TimePoint paused_until{};
  FailingMemory memory;
};

// Acts like mpirun: a second after the process of a rank failed it sends SIGTERM to the others, and another
// second later it kills them.
class SimWorld::Launcher final : public Actor {
 public:
  explicit Launcher(SimWorld& world) : world_(world), cleaned_(world.job_.world) {}

  void receive(Context&, Envelope&) override {}

  std::optional<TimePoint> idle(Context& context) override {
    clean_up(context);
    const TimePoint now = context.now();
    const bool terminates = terminate_at_ && now >= *terminate_at_;
    if (terminates) terminate_at_.reset();
    for (int rank = 0; rank < std::ssize(cleaned_); ++rank) {
      if (terminates && !has_ended(rank))
        world_.scheduler_.post(world_.ranks_[rank]->actors.supervisor, StopRequested{});
      if (kill_at_ && now >= *kill_at_ && !has_ended(rank)) world_.kill(rank);
    }
    return now + kLauncherPolls;
  }

 private:
  bool has_ended(int rank) const { return world_.scheduler_.stopped(rank); }

  void clean_up(Context& context) {
    int ended = 0;
    for (int rank = 0; rank < std::ssize(cleaned_); ++rank) {
      if (!has_ended(rank)) continue;
      ++ended;
      if (cleaned_[rank]) continue;
      cleaned_[rank] = true;
      world_.disk_.release_locks(rank);
      if (world_.scheduler_.stop_token_of(rank).aborted())
        world_.network_.lose_packets_of(rank);  // else MPI_Finalize delivers them
      if (world_.end_of(rank).well() || kill_at_) continue;
      terminate_at_ = context.now() + kGracePeriod;
      kill_at_ = *terminate_at_ + kGracePeriod;
    }
    if (ended == std::ssize(cleaned_))
      context.stop();
    else
      world_.watch_progress(context.now());
  }

  SimWorld& world_;
  std::vector<bool> cleaned_;  // by rank
  std::optional<TimePoint> terminate_at_, kill_at_;
};

SimWorld::SimWorld(const Job& job, SimDisk& disk, const FaultPlan* faults, const SimSeams& seams,
                   Options options)
    : job_(job),
      disk_(disk),
      seams_(seams),
      options_(std::move(options)),
      draw_(RandomKey(options_.seed, "world").fold_in(options_.attempt)),
      faults_(
          faults ? ScheduledFaults(*faults, draw_.fold_in(0), job.world, std::max<int64_t>(1, options_.steps))
                 : ScheduledFaults()),
      progress_(options_.most_stall),
      states_(job.world + 1),
      scheduler_({.seed = draw_.bits(1),
                  .on_switch = [this](int rank) { states_.enter(rank); },
                  .time_limit = TimePoint(options_.timeout)}),
      links_([this](const std::string& label, TimePoint until) { on_late(label, until); }),
      network_(scheduler_, job.world, draw_.fold_in(2),
               [this](int from, int to) {
                 check_alive(from);
                 return packet_delay(from, to);
               }),
      fabric_(scheduler_, job.world, draw_.fold_in(3), *this) {
  attempt_.steps.resize(job.world);
  attempt_.pieces = job.topology(0).share.pieces;
  scheduler_.separate_ranks();
  for (int rank = 0; rank < job.world; ++rank)
    Meter::fail_at(rank, {});  // clear failures of an earlier attempt
  track_samples();
  if (seams_.job) seams_.job(job_, options_.attempt);
  for (int rank = 0; rank < job_.world; ++rank) add(rank);
  scheduler_.install(scheduler_.reserve("launcher", job_.world), std::make_unique<Launcher>(*this));
}

SimWorld::~SimWorld() {
  for (const auto& rank : ranks_) abandon(rank->environment.groups);
  for (const Device& device : devices_) device.settle();
}

// If each rank has a dataset of its own, sample i of rank r counts as i * world + r.
void SimWorld::track_samples() {
  std::vector<std::shared_ptr<TrackingDataset>> datasets;
  const bool own = !job_.per_rank_train.empty();
  for (int rank = 0; rank < job_.world; ++rank) {
    datasets.push_back(own || rank == 0 ? std::make_shared<TrackingDataset>(job_.train_of(rank))
                                        : datasets[0]);
    if (own) job_.per_rank_train.datasets[rank] = datasets[rank];
  }
  if (!own) job_.train = datasets[0];
  job_.before_step = [this, datasets, own](int rank, int64_t step, const Trainee& trainee,
                                           const Batch& batch) {
    ranks_[rank]->trainee = &trainee;
    auto samples = datasets[rank]->indices_of(batch);
    for (int64_t& sample : samples)
      if (own && sample >= 0) sample = sample * job_.world + rank;
    attempt_.steps[rank][step].samples = std::move(samples);
  };
}

RankEnvironment SimWorld::environment_of(int rank) {
  const auto wrapped = [&](const auto& seam, auto part) {
    return seam ? seam(std::move(part), rank) : std::move(part);
  };
  RankEnvironment environment;
  environment.disk =
      wrapped(seams_.disk, disk_.view(rank, [this](const auto& call) { return disk_call(call); }));
  const auto factory = fabric_.factory(rank);
  const auto make = [&](const std::vector<int>& ranks) -> std::shared_ptr<Group> {
    return wrapped(seams_.group, factory->make(ranks));
  };
  const Mesh mesh = job_.mesh();
  devices_.push_back(job_.device(rank));
  states_.set_device(rank, devices_.back().where);
  environment.groups =
      groups_on_device(make_groups(make(mesh.ranks()), mesh, rank, make), devices_.back(), make,
                       communicators_of(job_.devices, job_.settings.collectives.backend, mesh.size()));
  environment.transport = wrapped(seams_.transport, network_.transport(rank));
  environment.clock = std::make_shared<RankClock>(scheduler_, ranks_[rank]->clock_jumped_ms);
  environment.recorder = std::make_shared<SimRecorder>(
      [this, rank](const TraceEvent& event) { on_event(rank, event); }, journal_of(rank));
  environment.host = kSimulatedHost;
  environment.memory_slot = rank;
  environment.process_started_s = 1e-3 * SimClock::kStartUnixMs;
  return environment;
}

void SimWorld::add(int rank) {
  ranks_.push_back(std::make_unique<Rank>(rank));
  ranks_[rank]->environment = environment_of(rank);
  const RankActors& actors = ranks_[rank]->actors = add_rank(scheduler_, job_, ranks_[rank]->environment);
  if (seams_.actors) seams_.actors(scheduler_, actors, job_, rank);
  network_.set_reader(rank, actors.sync);
  fabric_.set_reader(rank, actors.sync);
  scheduler_.set_poll_interval(actors.sync, kPollInterval);
}

std::unique_ptr<Recorder> SimWorld::journal_of(int rank) const {
  if (options_.journals.empty()) return nullptr;
  Job job = job_;
  job.run_dir = options_.journals;
  return make_recorder(job, rank, kSimulatedHost);
}

SimAttempt SimWorld::run() {
  try {
    scheduler_.run();
  } catch (const Aborted& aborted) {
    attempt_.stuck = aborted.what();
    attempt_.blocked_senders = scheduler_.blocked_senders();
  }
  for (int rank = 0; rank < job_.world; ++rank) {
    attempt_.ends.push_back(end_of(rank));
    const RankEnd& end = attempt_.ends.back();
    if (end.kind != EndKind::kKilled) ranks_[rank]->environment.recorder->end(end);
  }
  attempt_.deliveries = scheduler_.delivery_digest();
  attempt_.next_draw = scheduler_.next_draw();
  attempt_.took = scheduler_.now();
  progress_.progress(attempt_.took);
  attempt_.longest_stall = progress_.longest();
  return std::move(attempt_);
}

RankEnd SimWorld::end_of(int rank) const {
  const StopToken& stop = scheduler_.stop_token_of(rank);
  return stop.aborted() ? stop.end() : RankEnd{ranks_[rank]->environment.end};
}

void SimWorld::on_event(int rank, const TraceEvent& event) {
  check_alive(rank);
  if (seams_.on_event) seams_.on_event();
  observe(rank, event);
  const auto phase = phase_after(event.kind);
  if (!phase) return;
  enter_phase(rank, *phase);
  if (phase == FaultPhase::kBatch) spend_step(rank);
}

void SimWorld::observe(int rank, const TraceEvent& event) {
  using enum TraceKind;
  Rank& state = *ranks_[rank];
  const TraceKind kind = event.kind;
  if (kind == kBegins && rank == 0) attempt_.resumed_at = event.step;
  if (kind == kBatch) state.step = event.step + 1;
  if (kind == kBatch || kind == kAbortedAttempt) state.microbatches = 0;
  if (kind == kMicrobatch) state.microbatches = static_cast<int>(event.detail) + 1;
  if (kind == kStillHeld) attempt_.held.push_back({rank, event.step + 1, event.detail});
  if (kind == kCommitted || kind == kSkipped) record_step(rank, event.step + 1);
  if (kind == kDone) state.done = true;
  if (kind == kPublished)
    if (const KnownCheckpoint newest = options_.on_published(disk_); newest.step >= 0)
      attempt_.published[newest.step] = newest.bits;
  track_memory(rank, event);
}

void SimWorld::record_step(int rank, int64_t number) {
  SimStep& step = attempt_.steps[rank][number];
  step.weights = digest_of(*ranks_[rank]->trainee);
  step.microbatches = ranks_[rank]->microbatches;
  const bool too_many = options_.steps > 0 && number > options_.steps;
  if (number <= newest_step_ || too_many) return;
  newest_step_ = number;
  progress_.progress(scheduler_.now());
  scheduler_.set_time_limit(scheduler_.now() + options_.timeout);
}

// Between two backward passes is forward. A failure without a label is due to the memory budget.
void SimWorld::track_memory(int rank, const TraceEvent& event) {
  using enum TraceKind;
  FailingMemory& memory = ranks_[rank]->memory;
  const TraceKind kind = event.kind;
  const bool evaluates = memory.phase() == FaultPhase::kEvaluation;
  if (kind == kBackward) memory.enter(FaultPhase::kBackward);
  if (kind == kEvaluation) memory.enter(FaultPhase::kEvaluation);
  if (kind == kBatch || kind == kMicrobatch || kind == kBackwardDone || (kind == kOutOfMemory && !evaluates))
    memory.enter(FaultPhase::kMicrobatch);
  if (kind == kOutOfMemory) {
    const auto labels = memory.failed();
    for (const std::string& label : labels) ++attempt_.faults[label].count;
    if (labels.empty()) ++attempt_.faults[kBudgetLabel].count;
    progress_.disturb(scheduler_.now());
  }
  if (kind != kAbortedAttempt) return;
  int& most = attempt_.steps[rank][event.step + 1].aborted_microbatches;
  most = std::max(most, static_cast<int>(event.detail));
}

void SimWorld::enter_phase(int rank, FaultPhase phase) {
  for (const FaultRule* rule : faults_.due(rank, ranks_[rank]->step, phase)) inject(rank, *rule, phase);
  check_alive(rank);
}

// Names the rank that stood still for the longest time: other ranks worked until they had to wait.
void SimWorld::watch_progress(TimePoint now) {
  if (!progress_.stalls(now)) return;
  attempt_.stalls.push_back({.since = progress_.since(), .step = newest_step_});
  for (int rank = 0; rank < job_.world; ++rank) {
    if (scheduler_.stopped(rank)) continue;
    const auto last = parse_heartbeat(heartbeat_text(*ranks_[rank]->environment.recorder, now, false));
    if (last && last->age_s >= attempt_.stalls.back().last.age_s)
      attempt_.stalls.back().rank = rank, attempt_.stalls.back().last = *last;
  }
}

FaultCount& SimWorld::count_of(const FaultRule& rule) {
  return attempt_.faults.try_emplace(rule.label, FaultCount{rule.kind}).first->second;
}

void SimWorld::inject(int rank, const FaultRule& rule, FaultPhase phase) {
  count_of(rule);  // SimAttempt::faults lists all that were due
  progress_.disturb(scheduler_.now());
  switch (rule.kind) {
    case FaultKind::kDeath:
      count(rule);
      return kill(rank);
    case FaultKind::kPowerLoss:
      count(rule);
      lost_power_ = true;
      for (int r = 0; r < job_.world; ++r) kill(r);
      return;
    case FaultKind::kSigterm:
      return request_stop(rank, rule);
    case FaultKind::kHang:
      return hang(rule);
    case FaultKind::kSlowLink:
    case FaultKind::kClog:
    case FaultKind::kCut:
      if (job_.world > 1)
        begin_link_fault(links_, rule, rank, job_.world, scheduler_.now(),
                         draw_.fold_in(8).fold_in(draws_++));
      return;
    case FaultKind::kPause:
      return pause(rank, rule);
    case FaultKind::kClockJump:
      return jump_clock(rank, rule);
    case FaultKind::kOutOfMemory:
      return ranks_[rank]->memory.fail(
          phase, 1 + static_cast<int64_t>(draw_.fold_in(7).below(rule.count, draws_++)), rule.label);
    default:
      active_faults_.push_back({&rule, rank, rule.count});
  }
}

void SimWorld::kill(int rank) {
  scheduler_.suspend(rank, scheduler_.now());  // a paused process too is killed at once
  if (!scheduler_.stopped(rank)) scheduler_.abort_rank(rank, {EndKind::kKilled, "killed"});
}

// Collectives wait too, since the rank does not take its part in them.
void SimWorld::pause(int rank, const FaultRule& rule) {
  TimePoint& until = ranks_[rank]->paused_until;
  until = std::max(until, scheduler_.now() + rule.duration());
  scheduler_.suspend(rank, until);
  links_.hold({.from = rank, .begin = scheduler_.now(), .end = until, .label = ""});
  count(rule, until);
}

void SimWorld::jump_clock(int rank, const FaultRule& rule) {
  const bool forward = draw_.fold_in(9).below(2, draws_) == 0;  // all other draws stay the same
  ranks_[rank]->clock_jumped_ms += static_cast<int64_t>(forward ? 1e3 * rule.seconds : -1e3 * rule.seconds);
  count(rule);
}

// A message that stays held for ever is a hang.
void SimWorld::on_late(const std::string& label, TimePoint until) {
  progress_.disturb(until);
  if (label.empty()) return;
  int64_t& count = attempt_.faults.at(label).count;
  if (until == kNever && count == 0) attempt_.hangs.push_back({scheduler_.now(), until});
  ++count;
}

TimePoint SimWorld::arrival(const std::vector<int>& from, int to, TimePoint sent) {
  if (links_.calm()) return sent;
  TimePoint arrives = sent;
  for (const int rank : from)
    if (rank != to) arrives = std::max(arrives, links_.pass(rank, to, sent));
  return arrives;
}

// Counts only ranks that are still training.
void SimWorld::request_stop(int rank, const FaultRule& rule) {
  const Rank& state = *ranks_[rank];
  attempt_.asked_to_stop = true;
  if (!state.done) {
    count(rule);
    attempt_.stops.push_back({rank, state.step});
  }
  scheduler_.post(state.actors.supervisor, StopRequested{});
}

// Has no effect on a single rank, whose collectives never wait.
void SimWorld::hang(const FaultRule& rule) {
  if (job_.world == 1) return;
  const TimePoint until = rule.seconds > 0 ? scheduler_.now() + rule.duration() : kNever;
  fabric_.hang_next({until, rule.label});
}

void SimWorld::on_hang(const SimFabric::Hang& hang) {
  ++attempt_.faults.at(hang.label).count;
  progress_.disturb(hang.until);
  attempt_.hangs.push_back({scheduler_.now(), hang.until});
}

bool SimWorld::gone(int rank) const { return scheduler_.stopped(rank) && !end_of(rank).well(); }

void SimWorld::check_alive(int rank) const {
  const StopToken& stop = scheduler_.stop_token_of(rank);
  if (stop.aborted()) throw Aborted(stop.end());
}

void SimWorld::spend_step(int rank) {
  Nanoseconds step =
      std::chrono::microseconds(kMeanStepUs / 2 + draw_.fold_in(4).below(kMeanStepUs, draws_++));
  if (const FaultRule* slow = consume(FaultKind::kSlow, rank)) {
    step += slow->duration();
    count(*slow, scheduler_.now() + step);
  }
  scheduler_.spend(step);
}

SimDisk::WriteOutcome SimWorld::disk_call(const SimDisk::Call& call) {
  check_alive(call.rank);
  Nanoseconds answers{0};
  if (!call.reads) {
    enter_phase(call.rank, FaultPhase::kDisk);
    answers = std::chrono::microseconds(draw_.fold_in(5).below(kMaxDiskCallUs, draws_++));
  }
  if (const FaultRule* slow = consume(FaultKind::kSlowDisk, call.rank)) {
    answers += slow->duration();
    count(*slow, scheduler_.now() + answers);
  }
  if (!call.reads || answers > Nanoseconds(0)) scheduler_.spend(answers);
  if (!call.bytes) return SimDisk::WriteOutcome::kDone;
  for (ActiveFault& fault : active_faults_) {
    const FaultRule& rule = *fault.rule;
    if (!rule.affects_writes() || fault.remaining == 0 || fault.rank != call.rank) continue;
    if (call.path.find(rule.file) == std::string::npos) continue;
    const SimDisk::WriteOutcome outcome = outcome_of_write(rule.kind);
    if (!SimDisk::changes_write(outcome, *call.bytes)) continue;
    --fault.remaining;
    count(rule);
    return outcome;
  }
  return SimDisk::WriteOutcome::kDone;
}

SimNetwork::ExtraDelay SimWorld::packet_delay(int from, int to) {
  const TimePoint now = scheduler_.now();
  SimNetwork::ExtraDelay extra{.not_before = links_.pass(from, to, now)};
  if (const FaultRule* slow = consume(FaultKind::kDelay, from)) {
    extra.more += slow->duration();
    count(*slow, now + extra.more);
  }
  if (const FaultRule* mixed =
          consume(FaultKind::kReorder, from)) {  // counted by the network if it is overtaken
    extra.more += mixed->duration(draw_.fold_in(6).uniform(draws_++));
    progress_.disturb(now + extra.more);
    extra.overtaken = &count_of(*mixed).count;
  }
  return extra;
}

// Uses up one occurrence of an active rule of this kind for the rank; null if there is none. A reorder
// without a rank applies to all ranks.
const FaultRule* SimWorld::consume(FaultKind kind, int rank) {
  for (ActiveFault& fault : active_faults_) {
    const bool any_rank = kind == FaultKind::kReorder && !fault.rule->rank;
    if (fault.rule->kind != kind || fault.remaining == 0 || (!any_rank && fault.rank != rank)) continue;
    --fault.remaining;
    return fault.rule;
  }
  return nullptr;
}

}  // namespace tutti

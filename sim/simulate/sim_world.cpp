#include "sim/simulate/sim_world.h"

#include <algorithm>
#include <utility>

#include "io/checkpoint/checkpoint.h"
#include "job/run_journal.h"
#include "runtime/actor/stop_token.h"
#include "runtime/error.h"
#include "sim/environment/sim_clock.h"
#include "sim/environment/sim_launcher.h"
#include "sim/environment/sim_recorder.h"
#include "sim/faults/failing_memory.h"
#include "tensors/meter.h"

namespace tutti {
namespace {

constexpr const char* kBudget = "memory_budget";
constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(100);
constexpr uint64_t kStepUs = 20'000;
constexpr uint64_t kDiskCallUs = 500;

// The phase of a step that begins with this event, if one does.
std::optional<FaultPhase> phase_of(TraceKind kind) {
  static const std::map<TraceKind, FaultPhase> kPhases = {
      {TraceKind::kPrepares, FaultPhase::kStart},    {TraceKind::kBatchReady, FaultPhase::kLoad},
      {TraceKind::kBatch, FaultPhase::kBatch},       {TraceKind::kMicrobatch, FaultPhase::kMicrobatch},
      {TraceKind::kBackward, FaultPhase::kBackward}, {TraceKind::kReduceBucket, FaultPhase::kReduce},
      {TraceKind::kVerdict, FaultPhase::kVerdict},   {TraceKind::kCommitted, FaultPhase::kCommit},
      {TraceKind::kSkipped, FaultPhase::kCommit},    {TraceKind::kEvaluation, FaultPhase::kEvaluation},
      {TraceKind::kDurable, FaultPhase::kDurable},   {TraceKind::kPublished, FaultPhase::kPublish}};
  const auto found = kPhases.find(kind);
  return found == kPhases.end() ? std::nullopt : std::optional(found->second);
}

uint64_t digest_of(const Trainee& trainee) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& one : trainee.parameters) tensors["model/" + one.name] = one.parameter->tensor;
  for (const auto& one : trainee.buffers) tensors["model/" + one.name] = one.buffer->tensor;
  return weights_digest(tensors);
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

Nanoseconds duration(double seconds) { return Nanoseconds(static_cast<int64_t>(seconds * 1e9)); }

}  // namespace

// A rank, and what is known of it.
struct SimWorld::Rank {
  explicit Rank(int rank) : memory(rank) {}
  RankEnvironment environment;
  RankActors actors;
  const Trainee* trainee = nullptr;  // once it trains
  int64_t step = 0;                  // under way, from 1
  int microbatches = 0;              // of its last attempt, so far
  bool done = false;                 // all is trained, or it was stopped
  FailingMemory memory;
};

SimWorld::SimWorld(const Job& job, SimDisk& disk, const FaultPlan* faults, const SimSeams& seams,
                   Options options)
    : job_(job),
      disk_(disk),
      seams_(seams),
      options_(std::move(options)),
      draw_(RandomKey(options_.seed, "world").fold_in(options_.start)),
      faults_(
          faults ? ScheduledFaults(*faults, draw_.fold_in(0), job.world, std::max<int64_t>(1, options_.steps))
                 : ScheduledFaults()),
      states_(job.world + 1),
      scheduler_({.seed = draw_.bits(1),
                  .on_switch = [this](int rank) { states_.enter(rank); },
                  .time_limit = TimePoint(options_.timeout)}),
      network_(scheduler_, job.world, draw_.fold_in(2),
               [this](int from, int) {
                 check_alive(from);
                 return delay(from);
               }),
      fabric_(scheduler_, job.world, draw_.fold_in(3),
              {.gone = [this](int rank) { return scheduler_.stopped(rank); },
               .check = [this](int rank) { check_alive(rank); }}) {
  seen_.steps.resize(job.world);
  scheduler_.separate_ranks();
  for (int rank = 0; rank < job.world; ++rank) Meter::fail_at(rank, {});  // what an earlier start left
  watch_data();
  if (seams_.job) seams_.job(job_, options_.start);
  for (int rank = 0; rank < job_.world; ++rank) add(rank);
  add_launcher();
}

SimWorld::~SimWorld() = default;

// Where each rank has samples of its own, they are told apart by their numbers.
void SimWorld::watch_data() {
  std::vector<std::shared_ptr<WatchedDataset>> of_rank;
  const bool own = !job_.per_rank_train.empty();
  for (int rank = 0; rank < job_.world; ++rank) {
    of_rank.push_back(own || rank == 0 ? std::make_shared<WatchedDataset>(job_.train_of(rank)) : of_rank[0]);
    if (own) job_.per_rank_train.of_rank[rank] = of_rank[rank];
  }
  if (!own) job_.train = of_rank[0];
  job_.before_step = [this, of_rank, own](int rank, int64_t step, const Trainee& trainee,
                                          const Batch& batch) {
    ranks_[rank]->trainee = &trainee;
    auto samples = of_rank[rank]->indices_of(batch);
    for (int64_t& sample : samples)
      if (own && sample >= 0) sample = sample * job_.world + rank;
    seen_.steps[rank][step].samples = std::move(samples);
  };
}

RankEnvironment SimWorld::environment_of(int rank) {
  const auto through = [&](const auto& seam, auto way) {
    return seam ? seam(std::move(way), rank) : std::move(way);
  };
  RankEnvironment environment;
  environment.disk =
      through(seams_.disk, disk_.view(rank, [this](const auto& call) { return disk_call(call); }));
  environment.group = through(seams_.group, fabric_.group(rank));
  environment.transport = through(seams_.transport, network_.transport(rank));
  environment.clock = std::make_shared<SimClock>(scheduler_);
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

void SimWorld::add_launcher() {
  using Life = SimLauncher::Life;
  SimLauncher::Job job;
  job.ranks = job_.world;
  job.life = [this](int rank) {
    if (!scheduler_.stopped(rank)) return Life::kRuns;
    return end_of(rank).well() ? Life::kEndedWell : Life::kEndedBadly;
  };
  job.clean_up = [this](int rank) {
    disk_.release_locks(rank);
    if (scheduler_.stop_token_of(rank).aborted())
      network_.lose_packets_of(rank);  // MPI_Finalize sees them off
  };
  job.terminate = [this](int rank) { scheduler_.post(ranks_[rank]->actors.supervisor, StopRequested{}); };
  job.kill = [this](int rank) { kill(rank); };
  scheduler_.install(scheduler_.reserve("launcher", job_.world), std::make_unique<SimLauncher>(job));
}

StartSeen SimWorld::run() {
  try {
    scheduler_.run();
  } catch (const Aborted& aborted) {
    seen_.stuck = aborted.what();
    seen_.blocked_senders = scheduler_.blocked_senders();
  }
  for (int rank = 0; rank < job_.world; ++rank) {
    seen_.ends.push_back(end_of(rank));
    const RankEnd& end = seen_.ends.back();
    if (end.kind != EndKind::kKilled) ranks_[rank]->environment.recorder->end(end);
  }
  seen_.deliveries = scheduler_.delivery_digest();
  seen_.next_draw = scheduler_.next_draw();
  seen_.took = scheduler_.now();
  return std::move(seen_);
}

RankEnd SimWorld::end_of(int rank) const {
  const StopToken& stop = scheduler_.stop_token_of(rank);
  return stop.aborted() ? stop.end() : RankEnd{ranks_[rank]->environment.outcome.end};
}

// What ranks come to, and what then happens to them.

void SimWorld::on_event(int rank, const TraceEvent& event) {
  check_alive(rank);
  if (seams_.on_event) seams_.on_event();
  note(rank, event);
  const auto phase = phase_of(event.kind);
  if (!phase) return;
  come_to(rank, *phase);
  if (phase == FaultPhase::kBatch) spend_step(rank);
}

void SimWorld::note(int rank, const TraceEvent& event) {
  using enum TraceKind;
  Rank& its = *ranks_[rank];
  const TraceKind kind = event.kind;
  if (kind == kBegins && rank == 0) seen_.resumed_at = event.step;
  if (kind == kBatch) its.step = event.step + 1;
  if (kind == kBatch || kind == kAbortedAttempt) its.microbatches = 0;
  if (kind == kMicrobatch) its.microbatches = static_cast<int>(event.detail) + 1;
  if (kind == kStillHeld) seen_.held.push_back({rank, event.step + 1, event.detail});
  if (kind == kCommitted || kind == kSkipped) ended_step(rank, event.step + 1);
  if (kind == kDone) its.done = true;
  if (kind == kPublished)
    if (const KnownCheckpoint newest = options_.on_published(disk_); newest.step >= 0)
      seen_.published[newest.step] = newest.bits;
  count_memory(rank, event);
}

void SimWorld::ended_step(int rank, int64_t number) {
  StepSeen& step = seen_.steps[rank][number];
  step.weights = digest_of(*ranks_[rank]->trainee);
  step.microbatches = ranks_[rank]->microbatches;
  const bool too_many = options_.steps > 0 && number > options_.steps;
  if (number <= newest_step_ || too_many) return;
  newest_step_ = number;
  scheduler_.set_time_limit(scheduler_.now() + options_.timeout);
}

// What lies between two backwards counts as forward. Memory runs out by the plan, or by the recipe's budget,
// which is no fault.
void SimWorld::count_memory(int rank, const TraceEvent& event) {
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
    for (const std::string& label : labels) ++seen_.faults[label].count;
    if (labels.empty()) ++seen_.faults[kBudget].count;
  }
  if (kind != kAbortedAttempt) return;
  int& most = seen_.steps[rank][event.step + 1].aborted_microbatches;
  most = std::max(most, static_cast<int>(event.detail));
}

void SimWorld::come_to(int rank, FaultPhase phase) {
  for (const FaultRule* rule : faults_.due(rank, ranks_[rank]->step, phase)) inject(rank, *rule, phase);
  check_alive(rank);
}

FaultCount& SimWorld::count_of(const FaultRule& rule) {
  return seen_.faults.try_emplace(rule.label, FaultCount{rule.kind}).first->second;
}

void SimWorld::inject(int rank, const FaultRule& rule, FaultPhase phase) {
  count_of(rule);  // it was due
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
      return ask_to_stop(rank, rule);
    case FaultKind::kHang:
      return hang(rule);
    case FaultKind::kOutOfMemory:
      return ranks_[rank]->memory.fail(
          phase, 1 + static_cast<int64_t>(draw_.fold_in(7).below(rule.count, drawn_++)), rule.label);
    default:
      troubles_.push_back({&rule, rank, rule.count});
  }
}

void SimWorld::kill(int rank) {
  if (!scheduler_.stopped(rank)) scheduler_.abort_rank(rank, {EndKind::kKilled, "killed"});
}

// One that has nothing more to train has nothing to stop.
void SimWorld::ask_to_stop(int rank, const FaultRule& rule) {
  const Rank& its = *ranks_[rank];
  seen_.asked_to_stop = true;
  if (!its.done) {
    count(rule);
    seen_.stops.push_back({rank, its.step});
  }
  scheduler_.post(its.actors.supervisor, StopRequested{});
}

// A lone rank's collectives wait for nobody.
void SimWorld::hang(const FaultRule& rule) {
  if (job_.world == 1) return;
  const TimePoint until = rule.seconds > 0 ? scheduler_.now() + duration(rule.seconds) : kNever;
  fabric_.hang_next(until, [this, &rule, until] {
    count(rule);
    seen_.hangs.push_back({scheduler_.now(), until});
  });
}

void SimWorld::check_alive(int rank) const {
  const StopToken& stop = scheduler_.stop_token_of(rank);
  if (stop.aborted()) throw Aborted(stop.end());
}

void SimWorld::spend_step(int rank) {
  Nanoseconds step = std::chrono::microseconds(kStepUs / 2 + draw_.fold_in(4).below(kStepUs, drawn_++));
  if (const FaultRule* slow = use(FaultKind::kSlow, rank)) {
    step += duration(slow->seconds);
    count(*slow);
  }
  scheduler_.spend(step);
}

SimDisk::WriteOutcome SimWorld::disk_call(const SimDisk::Call& call) {
  check_alive(call.rank);
  come_to(call.rank, FaultPhase::kDisk);
  scheduler_.spend(std::chrono::microseconds(draw_.fold_in(5).below(kDiskCallUs, drawn_++)));
  if (!call.bytes) return SimDisk::WriteOutcome::kDone;
  for (Trouble& trouble : troubles_) {
    const FaultRule& rule = *trouble.rule;
    if (!rule.hits_disk() || trouble.left == 0 || trouble.rank != call.rank) continue;
    if (call.path.find(rule.file) == std::string::npos) continue;
    const SimDisk::WriteOutcome outcome = outcome_of_write(rule.kind);
    if (!SimDisk::matters(outcome, *call.bytes)) continue;
    --trouble.left;
    count(rule);
    return outcome;
  }
  return SimDisk::WriteOutcome::kDone;
}

SimNetwork::Lateness SimWorld::delay(int from) {
  SimNetwork::Lateness late;
  if (const FaultRule* slow = use(FaultKind::kDelay, from)) {
    late.more += duration(slow->seconds);
    count(*slow);
  }
  if (const FaultRule* mixed = use(FaultKind::kReorder, from)) {  // one that is only late is none
    late.more += duration(mixed->seconds * draw_.fold_in(6).uniform(drawn_++));
    late.overtaken = &count_of(*mixed).count;
  }
  return late;
}

// The rule that this time strikes the rank, if one does. Where a reorder names no rank, it is all ranks'.
const FaultRule* SimWorld::use(FaultKind kind, int rank) {
  for (Trouble& trouble : troubles_) {
    const bool everybodys = kind == FaultKind::kReorder && !trouble.rule->rank;
    if (trouble.rule->kind != kind || trouble.left == 0 || (!everybodys && trouble.rank != rank)) continue;
    --trouble.left;
    return trouble.rule;
  }
  return nullptr;
}

}  // namespace tutti

#include "sim/simulate/sim_world.h"

#include <algorithm>
#include <utility>

#include "actors/messages/heartbeat.h"
#include "io/checkpoint/checkpoint.h"
#include "job/run_journal.h"
#include "runtime/actor/stop_token.h"
#include "runtime/error.h"
#include "sim/environment/sim_clock.h"
#include "sim/environment/sim_launcher.h"
#include "sim/environment/sim_recorder.h"
#include "sim/environment/warnings_log.h"
#include "sim/faults/failing_memory.h"
#include "tensors/meter.h"

namespace tutti {
namespace {

constexpr const char* kKilled = "killed";
constexpr const char* kBudget = "memory_budget";
constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(100);
constexpr uint64_t kStepUs = 20'000;
constexpr uint64_t kDiskCallUs = 500;

// Which phase of a step an actor has come to; "" for the rest of what it records.
std::string phase_of(const Happening& happening) {
  static constexpr const char* kPhases[][3] = {
      {"compute", "prepares model and checkpoint", "start"},
      {"loader", "batch ready", "load"},
      {"compute", "batch", "batch"},
      {"compute", "microbatch", "microbatch"},
      {"compute", "backward", "backward"},
      {"sync", "reduce bucket", "reduce"},
      {"sync", "verdict", "verdict"},
      {"compute", "committed", "commit"},
      {"compute", "skipped", "commit"},
      {"compute", "evaluation", "evaluation"},
      {"checkpointer", "durable", "durable"},
      {"supervisor", "published", "publish"},
  };
  for (const auto& [actor, what, phase] : kPhases)
    if (happening.actor == actor && happening.what == what) return phase;
  return "";
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
  environment.log = std::make_shared<WarningsLog>(rank, seen_.warnings);
  environment.clock = std::make_shared<SimClock>(scheduler_);
  environment.recorder = std::make_shared<SimRecorder>(
      [this, rank](const Happening& what) { happened(rank, what); }, journal_of(rank));
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
    if (!end.killed)
      ranks_[rank]->environment.recorder->end(
          end.reason.empty() ? "exit code " + std::to_string(end.exit_code) : end.reason);
  }
  seen_.deliveries = scheduler_.delivery_digest();
  seen_.next_draw = scheduler_.next_draw();
  seen_.took = scheduler_.now();
  return std::move(seen_);
}

RankEnd SimWorld::end_of(int rank) const {
  const StopToken& stop = scheduler_.stop_token_of(rank);
  const RunOutcome& outcome = ranks_[rank]->environment.outcome;
  if (!stop.aborted()) return {outcome.exit_code, "", false, outcome.stopped};
  if (stop.reason() == kKilled) return {.reason = "", .killed = true};
  return {outcome.refused ? 2 : 1, stop.reason()};
}

// What ranks come to, and what then happens to them.

void SimWorld::happened(int rank, const Happening& happening) {
  check_alive(rank);
  if (seams_.happened) seams_.happened();
  seen(rank, happening);
  const std::string phase = phase_of(happening);
  if (phase.empty()) return;
  come_to(rank, phase);
  if (phase == "batch") spend_step(rank);
}

void SimWorld::seen(int rank, const Happening& happening) {
  Rank& its = *ranks_[rank];
  if (happening.actor == "compute") {
    if (happening.what == "begins" && rank == 0) seen_.resumed_at = happening.step;
    count_memory(rank, happening);
    if (happening.what == "batch") its.step = happening.step + 1;
    if (happening.what == "batch" || happening.what == "void") its.microbatches = 0;
    if (happening.what == "microbatch") its.microbatches = static_cast<int>(happening.detail) + 1;
    if (happening.what == "committed" || happening.what == "skipped") ended_step(rank, happening.step + 1);
    if (happening.what == kDone) its.done = true;
  }
  if (happening.actor == "supervisor" && happening.what == "published") {
    const KnownCheckpoint newest = options_.on_published(disk_);
    if (newest.step >= 0) seen_.published[newest.step] = newest.bits;
  }
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
void SimWorld::count_memory(int rank, const Happening& happening) {
  FailingMemory& memory = ranks_[rank]->memory;
  const bool ran_out = happening.what == "out of memory at allocation";
  const bool evaluates = memory.phase() == FailingMemory::kEvaluation;
  if (happening.what == "backward") memory.enter(FailingMemory::kBackward);
  if (happening.what == "evaluation") memory.enter(FailingMemory::kEvaluation);
  if (happening.what == "batch" || happening.what == "microbatch" || happening.what == "backward done" ||
      (ran_out && !evaluates))
    memory.enter(FailingMemory::kForward);
  if (ran_out) {
    const auto labels = memory.failed();
    for (const std::string& label : labels) ++seen_.faults[label];
    if (labels.empty()) ++seen_.faults[kBudget];
  }
  if (happening.what != "void") return;
  int& most = seen_.steps[rank][happening.step + 1].aborted_microbatches;
  most = std::max(most, static_cast<int>(happening.detail));
}

void SimWorld::come_to(int rank, const std::string& phase, int64_t step) {
  const int64_t now = std::max(step, ranks_[rank]->step);
  for (const FaultRule* rule : faults_.due(rank, now, phase)) inject(rank, *rule, phase);
  check_alive(rank);
}

void SimWorld::inject(int rank, const FaultRule& rule, const std::string& phase) {
  seen_.faults.try_emplace(rule.label, 0);
  switch (rule.kind) {
    case FaultKind::kDeath:
      happens(rule);
      return kill(rank);
    case FaultKind::kPowerLoss:
      happens(rule);
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
  if (!scheduler_.stopped(rank)) scheduler_.abort_rank(rank, kKilled);
}

// One that has nothing more to train has nothing to stop.
void SimWorld::ask_to_stop(int rank, const FaultRule& rule) {
  const Rank& its = *ranks_[rank];
  seen_.asked_to_stop = true;
  if (!its.done) {
    happens(rule);
    seen_.stops.push_back({rank, its.step});
  }
  scheduler_.post(its.actors.supervisor, StopRequested{});
}

// A lone rank's collectives wait for nobody.
void SimWorld::hang(const FaultRule& rule) {
  if (job_.world == 1) return;
  const TimePoint until = rule.seconds > 0 ? scheduler_.now() + duration(rule.seconds) : kNever;
  fabric_.hang_next(until, [this, &rule, until] {
    happens(rule);
    seen_.hangs.push_back({scheduler_.now(), until});
  });
}

void SimWorld::check_alive(int rank) const {
  const StopToken& stop = scheduler_.stop_token_of(rank);
  if (stop.aborted()) throw Aborted(stop.reason());
}

void SimWorld::spend_step(int rank) {
  Nanoseconds step = std::chrono::microseconds(kStepUs / 2 + draw_.fold_in(4).below(kStepUs, drawn_++));
  if (const FaultRule* slow = use(FaultKind::kSlow, rank)) {
    step += duration(slow->seconds);
    happens(*slow);
  }
  scheduler_.spend(step);
}

SimDisk::WriteOutcome SimWorld::disk_call(const SimDisk::Call& call) {
  check_alive(call.rank);
  come_to(call.rank, "disk");
  scheduler_.spend(std::chrono::microseconds(draw_.fold_in(5).below(kDiskCallUs, drawn_++)));
  if (std::string_view(call.what) != "write") return SimDisk::WriteOutcome::kDone;
  for (Trouble& trouble : troubles_) {
    const FaultRule& rule = *trouble.rule;
    if (!rule.hits_disk() || trouble.left == 0 || trouble.rank != call.rank) continue;
    if (call.path.find(rule.file) == std::string::npos) continue;
    const SimDisk::WriteOutcome outcome = outcome_of_write(rule.kind);
    if (!SimDisk::matters(outcome, call.bytes)) continue;
    --trouble.left;
    happens(rule);
    return outcome;
  }
  return SimDisk::WriteOutcome::kDone;
}

SimNetwork::Lateness SimWorld::delay(int from) {
  SimNetwork::Lateness late;
  if (const FaultRule* slow = use(FaultKind::kDelay, from)) {
    late.more += duration(slow->seconds);
    happens(*slow);
  }
  if (const FaultRule* mixed = use(FaultKind::kReorder, from)) {  // one that is only late is none
    late.more += duration(mixed->seconds * draw_.fold_in(6).uniform(drawn_++));
    late.overtaken = &seen_.faults[mixed->label];
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

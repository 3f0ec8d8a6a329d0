#include "commands/local_train.h"

#include <memory>
#include <optional>
#include <vector>

#include "actors/rank.h"
#include "collectives/local/group.h"
#include "job/run_journal.h"
#include "job/run_report.h"
#include "runtime/process/crash_report.h"
#include "runtime/process/process_watch.h"
#include "sim/environment/local_transport.h"
#include "sim/environment/sim_scheduler.h"
#include "tensors/process_state.h"

namespace tutti {
namespace {

// What one rank holds of the outside.
struct Berth {
  std::unique_ptr<Group> group;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Log> log;
  std::unique_ptr<Recorder> recorder;
  std::optional<CrashReport> crash;
  RunOutcome outcome;
};

}  // namespace

LocalRunResult train_in_one_process(const Setting& recipe, const LocalRunOptions& options) {
  if (options.live) hold_stop_signals();
  begin_process(recipe);
  Job job = make_job(recipe, {options.ranks, options.run_dir, options.resume, options.fresh_seed,
                              options.live ? fresh_nonce() : "local"});
  if (options.prepare) options.prepare(job);
  ProcessStateSwitch states(options.ranks);
  SimScheduler::Options scheduling;
  scheduling.seed = options.schedule_seed;
  if (options.live) scheduling.pace = SimScheduler::Pace::kReal;
  scheduling.on_switch = [&states](int rank) { states.enter(rank); };
  SimScheduler scheduler(scheduling);
  SystemClock clock;
  PosixDisk disk;
  const auto fabric = LocalFabric::make(options.ranks);
  LocalNetwork network(options.ranks);
  std::vector<Berth> berths(options.ranks);
  std::vector<ActorId> supervisors;
  for (int r = 0; r < options.ranks; ++r) {
    Berth& berth = berths[r];
    berth.group = fabric->group(r);
    berth.transport = network.transport(r);
    berth.log = options.quiet ? make_null_log() : make_log(rank_log_path(job.run_dir, r), r, r == 0);
    berth.recorder = options.live ? make_recorder(job, r, kLocalHost) : std::make_unique<RingRecorder>();
    if (options.live) berth.crash.emplace(*berth.recorder, r, rank_log_path(job.run_dir, r));
    const RankPlace place{r,
                          r,
                          kLocalHost,
                          prints_to_terminal(),
                          options.quiet,
                          process_started_s(),
                          options.live ? start_child : StartChild(),
                          options.live};
    const RankActors cast =
        add_rank(scheduler, job, place,
                 {*berth.group, *berth.transport, disk, clock, *berth.log, *berth.recorder}, berth.outcome);
    supervisors.push_back(cast.supervisor);
  }
  std::optional<ProcessWatch> watch;
  const auto tell_last = [&](TimePoint now) {
    for (auto& berth : berths) log_last_happenings(*berth.log, *berth.recorder, now);
  };
  const auto stop = [&] { scheduler.post(supervisors[0], StopRequested{}); };
  if (options.live) watch.emplace(scheduler, stop, 0, [&] { tell_last(clock.now()); });
  try {
    scheduler.run();
  } catch (const std::exception& error) {
    if (berths[0].outcome.refused && options.live) discard_journals(job);
    for (auto& berth : berths) berth.recorder->end(error.what());
    tell_last(scheduler.now());
    throw;
  }
  for (auto& berth : berths) log_trouble(*berth.log, *berth.recorder);
  for (auto& berth : berths) berth.recorder->end("exit code " + std::to_string(berth.outcome.exit_code));
  return {berths[0].outcome.exit_code, scheduler.delivery_digest()};
}

}  // namespace tutti

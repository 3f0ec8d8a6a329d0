#include "commands/local_train.h"

#include <list>
#include <optional>
#include <vector>

#include "actors/local_ranks.h"
#include "commands/live_environment.h"
#include "job/make_job.h"
#include "job/records/run_journal.h"
#include "job/records/run_report.h"
#include "runtime/printable.h"
#include "runtime/process/crash_report.h"
#include "runtime/process/memory_limits.h"
#include "runtime/process/process_watch.h"
#include "training/loggers/run_result.h"

namespace tutti {
namespace {

TokenScheduler::Options scheduling_of(const LocalRunOptions& options) {
  TokenScheduler::Options scheduling;
  scheduling.seed = options.schedule_seed;
  if (options.live) scheduling.pace = TokenScheduler::Pace::kReal;
  return scheduling;
}

void log_last_events(LocalRanks& ranks, TimePoint now) {
  for (auto& rank : ranks.environments()) log_last_events(*rank.log, *rank.recorder, now);
}

}  // namespace

LocalRunResult train_in_one_process(const Setting& recipe, const LocalRunOptions& options) {
  if (options.live) hold_stop_signals();
  if (options.live) MemoryLimits().require_start(1);
  const RunSettings settings = RunSettings::read(recipe);
  begin_process(settings);
  if (options.live) fetch_start(recipe, options.run_dir, options.resume);
  Job job = make_job(
      recipe, {.world = options.ranks,
               .run_dir = options.run_dir,
               .resume = options.resume,
               .fresh_seed = options.fresh_seed,
               .nonce = options.live ? fresh_nonce(run_folder(options.run_dir, settings.run_name)) : "local",
               .components = options.components});
  if (options.prepare) options.prepare(job);
  LocalRanks ranks(job, scheduling_of(options));
  TokenScheduler& scheduler = ranks.scheduler();
  std::list<CrashReport> crashes;
  std::vector<ActorId> supervisors;
  for (RankEnvironment& rank : ranks.environments()) {
    if (options.live) {
      make_live(rank, job, options.quiet);
      rank.output.json = options.json;
      if (rank.rank() == 0 && !options.quiet)
        for (const std::string& advice : job_advice(job)) rank.log->warning(advice);
      crashes.emplace_back(*rank.recorder, rank.rank(), rank_log_path(job.run_dir, rank.rank()));
    }
    supervisors.push_back(add_rank(scheduler, job, rank).supervisor);
  }
  std::optional<ProcessWatch> watch;
  if (options.live)
    watch.emplace(scheduler, 0,
                  ProcessWatch::Calls{.stop = [&] { scheduler.post(supervisors[0], StopRequested{}); },
                                      .report = [&] { log_last_events(ranks, SystemClock().now()); }});
  try {
    scheduler.run();
  } catch (const std::exception& error) {
    const RankEnd end = end_by(error);
    if (options.live)
      for (const auto& call : ranks.environments()[0].at_failure) call();
    if (end.kind == EndKind::kRefused && options.live) discard_journals(job);
    for (auto& rank : ranks.environments()) rank.recorder->end(end);
    if (end.kind != EndKind::kRefused && options.live) {
      PosixDisk disk;
      leave_error(disk, job.run_dir, error.what(), options.json, print_warning);
    }
    log_last_events(ranks, scheduler.now());
    throw;
  }
  for (const std::string& replaced : job.replaced()) ranks.environments()[0].log->warning(replaced);
  for (auto& rank : ranks.environments()) log_trouble(*rank.log, *rank.recorder);
  for (auto& rank : ranks.environments()) rank.recorder->end({rank.end});
  const EndKind end = ranks.environments()[0].end;
  const int code = code_with_uploads(exit_code(end), finish_uploads(ranks.environments()[0], job));
  return {code, end == EndKind::kStopped, scheduler.delivery_digest()};
}

}  // namespace tutti

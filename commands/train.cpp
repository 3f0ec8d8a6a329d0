#include "commands/train.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "collectives/agreement.h"
#include "collectives/local/group.h"
#include "collectives/mpi/group.h"
#include "collectives/mpi/transport.h"
#include "collectives/mpi/world.h"
#include "commands/live_environment.h"
#include "commands/start_agreement.h"
#include "io/journal/recorded_run.h"
#include "job/run_journal.h"
#include "job/run_report.h"
#include "runtime/actor/thread_scheduler.h"
#include "runtime/printable.h"
#include "runtime/process/crash_report.h"
#include "runtime/process/process_watch.h"
#include "runtime/process/this_process.h"
#include "runtime/process/watchdog.h"
#include "runtime/transport.h"
#include "sim/environment/local_transport.h"

namespace tutti {
namespace {

constexpr int kUserError = 2;
constexpr Nanoseconds kLastWords = std::chrono::seconds(20);  // rank 0 may still write a text and its table
constexpr Nanoseconds kFarewell = std::chrono::seconds(1);
static_assert(kLogsEndWithin + 4 * kFarewell < kLastWords, "other ranks wait for rank 0's slow loggers");

// A rank that is given this machine, and what runs its actors. Never destroyed where a logger hangs.
struct LiveRank {
  RankEnvironment environment;
  ThreadScheduler scheduler;
};

struct Exit {
  int code = 0;
  bool leaves_threads = false;  // of loggers that hang
};

// Ends the process: threads or other ranks may be stuck, so nothing is unwound.
[[noreturn]] void end_with(int exit_code) {
  run_with_timeout(kFarewell, [] { std::fflush(nullptr); });
  _exit(exit_code);
}

// A logger that hangs may do so for a disk that has the log and the journal too.
void warn_who_hangs(LiveRank& rank, const std::string& end) {
  std::string who;
  for (const std::string& one : rank.scheduler.abandoned()) who += (who.empty() ? "" : ", ") + one;
  const std::string what =
      who + " hangs or is slow: the run ends without it, and what it has not written is lost";
  const auto log = rank.environment.log;
  const auto recorder = rank.environment.recorder;
  const auto warn = [log, what] {
    log->warning(what);
    log->flush();
  };
  if (!run_with_timeout(kFarewell, warn)) print_warning(what);
  run_with_timeout(kFarewell, [log, recorder, end, who] {
    log_trouble(*log, *recorder);
    recorder->end(end + kEndedWithout + who);
  });
}

// Of an error that only this rank has. The process ends.
[[noreturn]] void end_with_error(const RankEnvironment& rank, const Job& job, const std::exception& error) {
  rank.recorder->end(error.what());
  rank.log->info(error.what());
  log_trouble(*rank.log, *rank.recorder);
  log_last_happenings(*rank.log, *rank.recorder, rank.clock->now());
  if (first_to_report((job.run_dir + "/recipe.toml").c_str())) {
    print_error(rank_message(rank.rank(), error.what()));
    if (job.world > 1) linger();
  }
  end_with(dynamic_cast<const UserError*>(&error) ? kUserError : 1);
}

// `connected` has group, transport and host.
Exit run_rank(const Job& job, RankEnvironment connected) {
  auto live = std::make_unique<LiveRank>(std::move(connected));
  RankEnvironment& environment = live->environment;
  ThreadScheduler& scheduler = live->scheduler;
  make_live(environment, job);
  const int rank = environment.rank();
  const CrashReport crash(*environment.recorder, rank, rank_log_path(job.run_dir, rank));
  if (rank == 0) environment.log->info("seed " + std::to_string(job.seed) + ", " + batch_identity(job));
  const RankActors actors = add_rank(scheduler, job, environment);
  const auto stop = [&] { scheduler.post(actors.supervisor, StopRequested{}); };
  const ProcessWatch watch(scheduler, stop, rank, [own = &environment] {
    log_last_happenings(*own->log, *own->recorder, own->clock->now());
  });
  try {
    scheduler.run();
  } catch (const std::exception& error) {
    if (!environment.outcome.refused) end_with_error(environment, job, error);
    if (rank == 0) discard_journals(job);
    throw;
  }
  const int exit_code = environment.outcome.exit_code;
  const std::string end = "exit code " + std::to_string(exit_code);
  if (!scheduler.abandoned().empty()) {
    warn_who_hangs(*live, end);
    environment.group.reset();  // before MPI ends
    environment.transport.reset();
    static_cast<void>(live.release());
    return {exit_code, /*leaves_threads=*/true};
  }
  log_trouble(*environment.log, *environment.recorder);
  environment.recorder->end(end);
  return {exit_code};
}

// Runs the job once all ranks agree on it. No rank ends before rank 0 has told why it does not run: mpirun
// would end rank 0 too.
Exit run_agreed(const StartRequest& request, Group& group, const std::function<Exit(const Job&)>& run) {
  try {
    if (request.good()) begin_process(request.recipe);
    return run(agree_on_job(request, group));
  } catch (const UserError& error) {
    if (group.rank() == 0) print_error(error.what());
    agree(group, {});
    return {kUserError};
  } catch (const std::exception& error) {
    print_error("rank " + std::to_string(group.rank()) + ": " + error.what());
    end_with(1);
  }
}

Exit train_under_mpi(StartRequest request) {
  const int self = launched_rank().value_or(0);
  std::optional<StartWatchdog> limit(std::in_place, self, "connecting to the other ranks (MPI_Init)",
                                     request.timeout());
  std::optional<StartWatchdog> leaving;  // outlives the world, whose end waits for every rank
  MpiWorld world(nullptr, nullptr);
  const SystemClock clock;
  const auto group = std::make_shared<MpiGroup>(world, clock, world.all_ranks(), Reduction::kOrdered);
  const auto transport = std::make_shared<MpiTransport>(world);
  limit.reset();
  request.host = world.host_name(world.rank());
  const Exit exit = run_agreed(request, *group, [&](const Job& job) {
    RankEnvironment connected{.group = group, .transport = transport, .host = request.host};
    if (job.recipe.at("collectives").at("reduction").text() == "native")
      connected.group = std::make_shared<MpiGroup>(world, clock, world.all_ranks(), Reduction::kNative);
    return run_rank(job, std::move(connected));
  });
  leaving.emplace(self, "leaving the other ranks (MPI_Finalize)", request.timeout() + kLastWords);
  return exit;
}

Exit train_alone(const StartRequest& request) {
  const std::shared_ptr<Group> group = LocalFabric::make(1)->group(0);
  return run_agreed(request, *group, [&](const Job& job) {
    return run_rank(job, {.group = group, .transport = LocalNetwork(1).transport(0), .host = request.host});
  });
}

}  // namespace

int train(const RecipeSource& recipe, const LaunchOptions& options) {
  hold_stop_signals();
  const StartRequest request = make_request(recipe, options);
  const bool mpi =
      launched_rank() || (request.good() && request.recipe.at("collectives").at("backend").text() == "mpi");
  const Exit exit = mpi ? train_under_mpi(request) : train_alone(request);
  if (exit.leaves_threads && options.ends_process) end_with(exit.code);
  return exit.code;
}

}  // namespace tutti

#include "commands/train.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <ranges>
#include <set>
#include <thread>

#include "collectives/agreement.h"
#include "collectives/device/groups.h"
#include "collectives/local/group.h"
#include "collectives/local/transport.h"
#include "collectives/mpi/group.h"
#include "collectives/mpi/transport.h"
#include "collectives/mpi/world.h"
#include "commands/live_environment.h"
#include "commands/local_train.h"
#include "commands/start_agreement.h"
#include "io/checkpoint/checkpoint.h"
#include "io/remote/remote_catalog.h"
#include "job/make_job.h"
#include "job/records/run_journal.h"
#include "job/records/run_report.h"
#include "runtime/actor/scheduler.h"
#include "runtime/disk.h"
#include "runtime/launcher.h"
#include "runtime/printable.h"
#include "runtime/process/crash_report.h"
#include "runtime/process/memory_limits.h"
#include "runtime/process/process_watch.h"
#include "runtime/process/this_process.h"
#include "runtime/transport.h"
#include "tensors/memory/meter.h"
#include "tensors/memory/torch_error.h"
#include "training/loggers/run_result.h"

namespace tutti {
namespace {

constexpr Nanoseconds kFinalizeTimeout = std::chrono::seconds(20);  // rank 0 may still write text and tables
constexpr Nanoseconds kFlushTimeout = std::chrono::seconds(1);
constexpr Nanoseconds kFailureTimeout = std::chrono::seconds(5);  // mpirun kills the ranks after the first
static_assert(kLogsEndWithin + 4 * kFlushTimeout < kFinalizeTimeout,
              "other ranks wait for rank 0's slow loggers");

// A rank on this machine and its scheduler. Never destroyed if a logger hangs.
struct LiveRank {
  RankEnvironment environment;
  ThreadScheduler scheduler;
};

struct Exit {
  int code = 0;
  bool stopped = false;         // on request
  bool leaves_threads = false;  // abandoned loggers
};

// Ends the process without destructors, since threads or other ranks may hang.
[[noreturn]] void end_with(int exit_code) {
  run_with_timeout(kFlushTimeout, [] { std::fflush(nullptr); });
  std::quick_exit(exit_code);
}

// With timeouts: the log and the journal may be on the same stuck disk.
void warn_of_abandoned(LiveRank& rank, EndKind end) {
  std::string who;
  for (const std::string& title : rank.scheduler.abandoned()) who += (who.empty() ? "" : ", ") + title;
  const std::string what =
      who + " hangs or is slow: the run ends without it, and what it has not written is lost";
  const auto log = rank.environment.log;
  const auto recorder = rank.environment.recorder;
  const auto warn = [log, what] {
    log->warning(what);
    log->flush();
  };
  if (!run_with_timeout(kFlushTimeout, warn)) print_warning(what);
  run_with_timeout(kFlushTimeout, [log, recorder, end] {
    log_trouble(*log, *recorder);
    recorder->end({end});
  });
}

// The first rank to meet an error prints it.
void report_once(const RankEnvironment& rank, const Job& job, const std::string& error) {
  if (!first_to_report()) return linger();
  const std::string message = job.world > 1 ? rank_message(rank.rank(), error) : error;
  print_error(message);
  run_with_timeout(kFlushTimeout,
                   [&] { leave_error(*rank.disk, job.run_dir, message, rank.output.json, print_warning); });
}

// Ends the process after an error of this rank alone.
[[noreturn]] void end_with_error(const RankEnvironment& rank, const Job& job, const std::exception& error) {
  const RankEnd end = end_by(error);
  rank.recorder->end(end);
  rank.log->info(error.what());
  log_trouble(*rank.log, *rank.recorder);
  log_last_events(*rank.log, *rank.recorder, rank.clock->now());
  report_once(rank, job, error.what());
  end_with(exit_code(end.kind));
}

// Other ranks wait for rank 0's uploads, and end with its code, since mpirun ends all ranks after the first
// that fails.
int agreed_code(const Job& job, int code, Group& group) {
  const Time limit = RemoteKeys::read(job.recipe).finish_timeout;
  const auto all = agreed_texts(agree(group, {.text = std::to_string(code)},
                                      std::chrono::seconds(limit.count()) + job.settings.train.hang_timeout));
  return std::stoi(all[0]);
}

// `connected`: with group, transport and host.
Exit run_rank(const Job& job, RankEnvironment connected) {
  auto live = std::make_unique<LiveRank>(std::move(connected));
  RankEnvironment& environment = live->environment;
  ThreadScheduler& scheduler = live->scheduler;
  make_live(environment, job);
  environment.outside.start_workers = start_workers;
  const int rank = environment.rank();
  if (job.world > 1) share_reports(job.run_dir + "/.reported", job.nonce, rank);
  const CrashReport crash(*environment.recorder, rank, rank_log_path(job.run_dir, rank));
  if (rank == 0) environment.log->info("seed " + std::to_string(job.seed) + ", " + batch_identity(job));
  if (rank == 0)
    for (const std::string& advice : job_advice(job)) environment.log->warning(advice);
  const RankActors actors = add_rank(scheduler, job, environment);
  const ProcessWatch watch(
      scheduler, rank,
      {.stop = [&] { scheduler.post(actors.supervisor, StopRequested{}); },
       .report = [own = &environment] { log_last_events(*own->log, *own->recorder, own->clock->now()); }});
  try {
    scheduler.run();
  } catch (const std::exception& error) {
    run_with_timeout(kFailureTimeout, [&environment] {
      for (const auto& call : environment.at_failure) call();
    });
    if (end_by(error).kind != EndKind::kRefused) end_with_error(environment, job, error);
    if (rank == 0) discard_journals(job);
    throw;
  }
  const EndKind end = environment.end;
  const int code = code_with_uploads(exit_code(end), finish_uploads(environment, job));
  for (const std::string& replaced : job.replaced()) environment.log->warning(replaced);
  if (!scheduler.abandoned().empty()) {
    warn_of_abandoned(*live, end);
    environment.groups.fill(nullptr);  // before MPI ends
    environment.transport.reset();
    static_cast<void>(live.release());
    return {code, end == EndKind::kStopped, /*leaves_threads=*/true};
  }
  log_trouble(*environment.log, *environment.recorder);
  environment.recorder->end({end});
  return {code, end == EndKind::kStopped};
}

// Runs the job after all ranks have agreed on the job. If they do not agree, ranks wait until rank 0 has
// printed the error: mpirun ends all ranks once one has ended with an error.
Exit run_agreed(const StartRequest& request, Group& group, const std::function<Exit(const Job&)>& run) {
  try {
    if (request.good()) begin_process(request.settings);
    return run(agree_on_job(request, group));
  } catch (const UserError& error) {
    if (group.rank() == 0) print_error(error.what());
    agree(group, {});
    return {exit_code(stop_asked() ? EndKind::kInterrupted : error.kind())};
  } catch (const std::exception& error) {
    report_unshared(one_line(error));
    end_with(1);
  }
}

// True if each of Slurm's tasks would train a run of its own.
bool is_lone_task(const StartRequest& request) { return is_one_of_slurms_tasks() && request.good(); }

// All tasks are refused; the first prints the reason.
Exit refuse_lone_task() {
  if (slurm_task() == 0)
    print_error(std::string("Slurm has ") + std::getenv("SLURM_NTASKS") +
                " tasks (SLURM_NTASKS), and each is a run of its own with one rank; start them with "
                "`srun --mpi=pmix tutti train ...` (`srun --mpi=list` must list pmix) or "
                "`mpirun tutti train ...`, or with --local-ranks 1 for one rank");
  return {exit_code(EndKind::kRefused)};
}

int hosts_of(const MpiWorld& world) {
  std::set<std::string> hosts;
  for (const int rank : world.all_ranks()) hosts.insert(world.host_name(rank));
  return static_cast<int>(hosts.size());
}

int most_neighbours(const MpiWorld& world) {
  std::map<int, int> ranks_of;
  for (const int host : world.host_of()) ++ranks_of[host];
  return std::ranges::max(std::views::values(ranks_of));
}

// None, unless all ranks have chosen them: hosts may have different numbers of devices.
std::shared_ptr<const DeviceLibrary> agreed_communicators(const Job& job, int neighbours, Group& group) {
  auto mine = communicators_of(job.devices, job.settings.collectives.backend, neighbours);
  const auto all = agreed_texts(agree(group, {.text = mine ? "communicators" : ""}));
  return std::ranges::all_of(all, [](const std::string& one) { return !one.empty(); }) ? mine : nullptr;
}

using RunJob = std::function<Exit(const Job&, RankEnvironment)>;

Exit train_under_mpi(MpiWorld& world, const Clock& clock, StartRequest request, const RunJob& run) {
  const auto group = std::make_shared<MpiGroup>(world, clock, world.all_ranks());
  request.host = world.host_name(world.rank());
  if (world.size() == 1 && is_lone_task(request)) return refuse_lone_task();
  return run_agreed(request, *group, [&](const Job& job) {
    const auto make = [&](const std::vector<int>& ranks) {
      return std::make_shared<MpiGroup>(world, clock, ranks);
    };
    RankEnvironment connected{
        .transport = std::make_shared<MpiTransport>(world), .host = request.host, .hosts = hosts_of(world)};
    connected.groups = groups_on_device(make_groups(group, job.mesh(), world.rank(), make), job.device(0),
                                        make, agreed_communicators(job, most_neighbours(world), *group));
    Exit exit = run(job, std::move(connected));
    if (!job.settings.checkpoint.remote_folder->empty()) exit.code = agreed_code(job, exit.code, *group);
    return exit;
  });
}

Exit train_alone(const StartRequest& request, const RunJob& run) {
  const std::shared_ptr<Group> group = LocalFabric::make(1)->group(0);
  return run_agreed(request, *group, [&](const Job& job) {
    return run(job, {.groups = {group}, .transport = LocalNetwork(1).transport(0), .host = request.host});
  });
}

}  // namespace

// MPI, from MPI_Init to MPI_Finalize, each with a timeout for missing ranks.
struct Launcher::Mpi {
  explicit Mpi(Nanoseconds timeout) : timeout(timeout) {
    const StartWatchdog connecting(rank, "connecting to the other ranks (MPI_Init)", timeout);
    world.emplace(nullptr, nullptr);
  }
  ~Mpi() {
    const StartWatchdog leaving(rank, "leaving the other ranks (MPI_Finalize)", timeout + kFinalizeTimeout);
    world.reset();
  }

  int rank = launched_rank().value_or(0);
  Nanoseconds timeout;
  SystemClock clock;
  std::optional<MpiWorld> world;
};

Launcher::Launcher() = default;
Launcher::~Launcher() = default;

int Launcher::train_in_this_process(const RecipeSource& recipe, const LaunchOptions& options) {
  LocalRunOptions local;
  local.ranks = options.local_ranks;
  local.fresh_seed = std::random_device()();
  local.run_dir = options.run_dir;
  local.resume = options.resume;
  local.live = true;
  local.json = options.json;
  local.components = options.components;
  local.prepare = [this](const Job& job) {
    checkpoints_ = job.checkpoints;
    set_ = job.settings.checkpoint.set;
  };
  const LocalRunResult result = train_in_one_process(recipe(), local);
  stopped_ = result.stopped;
  return result.exit_code;
}

int Launcher::train(const RecipeSource& source, const LaunchOptions& options) {
  if (options.local_ranks > 0 && !launched_rank()) return train_in_this_process(source, options);
  const auto recipe = [&] {
    if (options.local_ranks > 0)
      throw UserError("--local-ranks " + std::to_string(options.local_ranks) +
                      ": under mpirun the ranks are mpirun's; leave one of the two out");
    return source();
  };
  hold_stop_signals();
  StartRequest request = make_request(recipe, options);
  Meter::install();  // before threads and libraries of MPI take addresses that are limited
  MemoryLimits("/proc/self", launched_neighbours()).require_start(request.settings.device.threads);
  const auto run = [this, &options](const Job& job, RankEnvironment connected) {
    connected.output.json = options.json;
    checkpoints_ = job.checkpoints;
    set_ = job.settings.checkpoint.set;
    return run_rank(job, std::move(connected));
  };
  Exit exit;
  if (launched_rank() || (request.good() && request.settings.collectives.backend == Backend::kMpi)) {
    if (!mpi_) mpi_ = std::make_unique<Mpi>(request.timeout());
    mpi_->timeout = request.timeout();
    exit = train_under_mpi(*mpi_->world, mpi_->clock, request, run);
  } else {
    exit = is_lone_task(request) ? refuse_lone_task() : train_alone(request, run);
  }
  leaves_threads_ = leaves_threads_ || exit.leaves_threads;
  if (leaves_threads_ && options.ends_process) {
    mpi_.reset();
    end_with(exit.code);
  }
  stopped_ = exit.stopped;
  return exit.code;
}

std::string Launcher::newest_checkpoint() const {
  if (checkpoints_.empty()) return "";
  const auto names = checkpoints_to_try(PosixDisk(), checkpoints_, set_);
  return names.empty() ? "" : checkpoints_ + "/" + names[0];
}

void Launcher::save_checkpoint(const std::string& folder) const {
  Statement copied;
  if (launched_rank().value_or(0) == 0) {
    const std::string newest = newest_checkpoint();
    copied.text = newest.empty() ? "none" : "";
    try {
      PosixDisk disk;
      if (!newest.empty()) copy_checkpoint(disk, newest, folder);
    } catch (const std::exception& error) {
      copied.trouble = one_line(error);
    }
  }
  if (mpi_) {
    const auto ranks = mpi_->world->all_ranks();
    MpiGroup group(*mpi_->world, mpi_->clock, ranks);
    wait_until_ready(group);  // rank 0's copy may take long
    copied = agree(group, copied, mpi_->timeout)[0];
  }
  if (!copied.text.empty()) throw UserError(folder + ": there is no checkpoint to copy");
  if (!copied.trouble.empty()) throw OperatingError(copied.trouble);
}

}  // namespace tutti

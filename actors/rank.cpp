#include "actors/rank.h"

#include <algorithm>

#include "actors/checkpointer.h"
#include "actors/compute/compute.h"
#include "actors/loader.h"
#include "actors/logging/log_queue.h"
#include "actors/logging/log_writer.h"
#include "actors/sync.h"
#include "job/algorithms.h"
#include "runtime/workers.h"
#include "training/loggers/console_logger.h"
#include "training/loggers/factory.h"
#include "training/loggers/metrics_file.h"
#include "training/loggers/progress.h"
#include "training/loggers/run_result.h"

namespace tutti {
namespace {

constexpr Nanoseconds kAbandonDelay = std::chrono::seconds(3);  // after a destination's own time limit
static_assert(LogWriter::kMostToFinish + kAbandonDelay <= kLogsEndWithin);

std::string name_of(const Device& device) { return device.is_cpu() ? "cpu" : device.name; }

Progress::Facts facts_of(const Job& job, const RankEnvironment& environment) {
  return {.model = job.model_name(),
          .device = name_of(job.device(environment.memory_slot)),
          .threads = job.settings.device.threads,
          .num_workers = job.settings.train_data.num_workers,
          .cores = usable_cores(),
          .hosts = environment.hosts,
          .seed = job.seed};
}

// Facts of a live run's folders for the display. Trouble is a warning.
void join_folders(Progress::Options& progress, const Job& job, Disk& disk) {
  progress.newest_checkpoint = [&job, &disk] {
    const CheckpointSearch manifests_only{.on_bad = [](const std::string&) {},
                                          .verify = [](const Checkpoint&) {}};
    return newest_good_checkpoint(disk, job.checkpoints, manifests_only, job.settings.checkpoint.set).folder;
  };
  progress.disk = &disk;
}

// Log destinations of every run.
Destinations built_in_destinations(const Job& job, const RankEnvironment& environment,
                                   const Destinations& others) {
  if (environment.rank() > 0) return {};
  const auto warn = [&log = *environment.log](const std::string& what) { log.warning(what); };
  Progress::Options progress;
  progress.out = environment.output.quiet ? nullptr : stdout;
  progress.lines = job.settings.train.progress_bar;
  progress.show_every_steps = job.settings.train.progress_interval;
  progress.json = environment.output.json;
  progress.tables = std::ranges::none_of(
      others, [](const auto& one) { return dynamic_cast<const ConsoleLogger*>(one.get()) != nullptr; });
  progress.facts = facts_of(job, environment);
  progress.warn = warn;
  if (environment.live) join_folders(progress, job, *environment.disk);
  return {std::make_shared<MetricsFile>(*environment.disk, *environment.clock, job.run_dir,
                                        environment.process_started_s, warn),
          std::make_shared<Progress>(std::move(progress), *environment.clock)};
}

// Log destinations of the recipe and of the program.
Destinations destinations_of(const Job& job, RankEnvironment& environment,
                             const Callbacks& program_callbacks) {
  Destinations all = make_loggers(
      job.recipe, {*environment.disk, *environment.clock, *environment.log,
                   environment.output.quiet ? nullptr : stdout, environment.output.quiet ? nullptr : stderr,
                   environment.outside.start_child, environment.outside.open_http, &environment.at_failure});
  for (const auto& callback : program_callbacks)
    if (auto destination = std::dynamic_pointer_cast<LoggerDestination>(callback))
      all.push_back(std::move(destination));
  if (environment.rank() > 0) std::erase_if(all, [](const auto& one) { return one->rank_zero_only(); });
  return all;
}

// Packets between two Supervisors that may wait: a request to stop and the end; to rank 0 also the parts of
// three checkpoints, since only rank 0 waits for a publication, and waits within a step.
constexpr int kOrders = 2, kParts = 3;

MailboxCapacity supervisor_capacity(int rank, int world) {
  MailboxCapacity capacity;
  capacity.reserved += world * (rank == 0 ? kOrders + kParts : kOrders);
  return capacity;
}

// A Supervisor sends its orders to all ranks without waiting, since Sync may be stuck.
MailboxCapacity sync_capacity(int world) {
  MailboxCapacity capacity;
  capacity.requests += world * kOrders;
  return capacity;
}

RankActors reserve_actors(Scheduler& scheduler, const Job& job, int rank, const Destinations& built_in,
                          const Destinations& destinations) {
  RankActors actors;
  actors.loader = scheduler.reserve("loader", rank);
  actors.compute = scheduler.reserve("compute", rank);
  actors.sync = scheduler.reserve("sync", rank, sync_capacity(job.world));
  actors.checkpointer = scheduler.reserve("checkpointer", rank);
  actors.supervisor = scheduler.reserve("supervisor", rank, supervisor_capacity(rank, job.world));
  for (const auto& evaluator : job.evaluators) {
    const bool first = actors.eval_loaders.empty();
    actors.eval_loaders.push_back(
        scheduler.reserve(first ? "eval_loader" : "eval_loader." + evaluator.label, rank));
  }
  const auto add_log = [&](const std::string& actor, const std::string& name, LoggerDestination& log) {
    const ActorId writer = scheduler.reserve(actor, rank, {.requests = LogQueue::kMailboxCapacity});
    actors.logs.push_back({writer, name, log.durable() ? log.sync_timeout() : Nanoseconds(0),
                           log.numbers_only(), log.report_interval()});
    scheduler.abandon_after(writer, name, LogWriter::time_to_finish(log) + kAbandonDelay);
  };
  for (const auto& destination : built_in) add_log(destination->name(), destination->name(), *destination);
  for (std::size_t i = 0; i < destinations.size(); ++i)
    add_log("logger_" + std::to_string(i), "logger " + destinations[i]->name(), *destinations[i]);
  return actors;
}

Engine::Options listeners_of(const Job& job, const RankEnvironment& environment) {
  Engine::Options listeners;
  if (job.listeners) listeners = job.listeners(environment.rank());
  for (auto& algorithm : make_algorithms(job)) listeners.algorithms.push_back(std::move(algorithm));
  if (job.plugin) job.plugin->add_listeners(job.recipe, environment.live, listeners);
  return listeners;
}

std::unique_ptr<Workers> workers_of(const RankEnvironment& environment, const DataSettings& data) {
  if (!environment.outside.start_workers || data.num_workers < 2) return nullptr;
  return environment.outside.start_workers(data.num_workers);
}

}  // namespace

RankActors add_rank(Scheduler& scheduler, const Job& job, RankEnvironment& environment) {
  const int rank = environment.rank();
  const Device device = job.device(environment.memory_slot);
  auto& disk = *environment.disk;
  auto& log = *environment.log;
  auto& recorder = *environment.recorder;
  Engine::Options listeners = listeners_of(job, environment);
  const Destinations destinations = destinations_of(job, environment, listeners.destinations);
  Destinations logs = built_in_destinations(job, environment, destinations);
  const RankActors actors = reserve_actors(scheduler, job, rank, logs, destinations);
  scheduler.record_deliveries(rank, recorder);
  scheduler.install(
      actors.loader,
      std::make_unique<Loader>(
          job.train_of(rank), [&job](const RankTopology& place) { return job.train_sampler(place); },
          actors.compute, recorder, workers_of(environment, job.settings.train_data), device));
  for (std::size_t e = 0; e < job.evaluators.size(); ++e) {
    const Evaluator& evaluator = job.evaluators[e];
    scheduler.install(
        actors.eval_loaders[e],
        std::make_unique<Loader>(
            evaluator.data_of(rank),
            [&job, &evaluator](const RankTopology& place) { return job.eval_sampler(evaluator, place); },
            actors.compute, recorder, workers_of(environment, evaluator.loading), device));
  }
  scheduler.install(actors.compute, std::make_unique<Compute>(job, device, std::move(listeners), actors, disk,
                                                              log, recorder));
  scheduler.install(actors.sync,
                    std::make_unique<Sync>(*environment.transport, actors.supervisor, recorder, device));
  scheduler.install(actors.checkpointer, std::make_unique<Checkpointer>(disk, job.checkpoints,
                                                                        actors.supervisor, recorder, device));
  scheduler.install(actors.supervisor, std::make_unique<Supervisor>(
                                           job,
                                           Supervisor::Place{environment.host, environment.after_interrupt,
                                                             environment.outside.uploads.get()},
                                           actors, disk, log, recorder, environment.end));
  logs.insert(logs.end(), destinations.begin(), destinations.end());
  for (std::size_t i = 0; i < logs.size(); ++i)
    scheduler.install(actors.logs[i].writer, std::make_unique<LogWriter>(actors.logs[i].name, logs[i], log));
  scheduler.post(actors.supervisor, Join{.topology = job.topology(rank), .groups = environment.groups});
  return actors;
}

}  // namespace tutti

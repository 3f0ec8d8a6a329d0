#include "actors/rank.h"

#include "actors/checkpointer.h"
#include "actors/compute/compute.h"
#include "actors/loader.h"
#include "actors/logging/log_writer.h"
#include "actors/logging/reporter.h"
#include "actors/sync.h"
#include "job/algorithms.h"
#include "training/loggers/factory.h"
#include "training/time/time.h"

namespace tutti {
namespace {

// A checkpoint whose lines are lost is worse than one that comes late; training goes on meanwhile.
constexpr Nanoseconds kMetricsWaitAtMost = std::chrono::seconds(5);
// After everything else has ended.
constexpr Nanoseconds kMetricsEndWithin = std::chrono::seconds(10);
constexpr Nanoseconds kBeyondTheEnd = std::chrono::seconds(3);  // of what a destination has for it
static_assert(kMetricsEndWithin <= kLogsEndWithin &&
              LogWriter::kMostToFinish + kBeyondTheEnd <= kLogsEndWithin);

// Those of the recipe, and those that the program brings.
Destinations destinations_of(const Job& job, const RankEnvironment& environment, const Callbacks& own) {
  Destinations all =
      make_loggers(job.recipe, {*environment.disk, *environment.clock, *environment.log,
                                environment.quiet ? nullptr : stdout, environment.quiet ? nullptr : stderr,
                                environment.start_child});
  for (const auto& one : own)
    if (auto destination = std::dynamic_pointer_cast<LoggerDestination>(one))
      all.push_back(std::move(destination));
  if (environment.rank() > 0) std::erase_if(all, [](const auto& one) { return one->rank_zero_only(); });
  return all;
}

RankActors reserve_cast(Scheduler& scheduler, const Job& job, int rank, const Destinations& destinations) {
  RankActors cast;
  cast.loader = scheduler.reserve("loader", rank);
  cast.compute = scheduler.reserve("compute", rank);
  cast.sync = scheduler.reserve("sync", rank);
  cast.checkpointer = scheduler.reserve("checkpointer", rank);
  cast.supervisor = scheduler.reserve("supervisor", rank);
  for (const auto& evaluator : job.evaluators) {
    const bool first = cast.eval_loaders.empty();
    cast.eval_loaders.push_back(
        scheduler.reserve(first ? "eval_loader" : "eval_loader." + evaluator.label, rank));
  }
  cast.has_reporter = rank == 0;
  if (cast.has_reporter) {
    cast.reporter = scheduler.reserve("reporter", rank);
    cast.durable_logs.push_back({cast.reporter, "metrics.jsonl", kMetricsWaitAtMost});
    scheduler.may_hang(cast.reporter, "metrics.jsonl", kMetricsEndWithin);
  }
  for (const auto& destination : destinations) {
    const std::string number = std::to_string(cast.log_writers.size());
    const ActorId writer = scheduler.reserve("logger_" + number, rank);
    const std::string name = "logger " + destination->name();
    cast.log_writers.push_back(writer);
    cast.log_names.push_back(name);
    if (destination->durable()) cast.durable_logs.push_back({writer, name});
    scheduler.may_hang(writer, name, LogWriter::time_to_finish(*destination) + kBeyondTheEnd);
  }
  return cast;
}

CheckpointShelf::Options shelf_options(const Job& job) {
  CheckpointShelf::Options options;
  const Setting& checkpoint = job.recipe.at("checkpoint");
  options.folder = job.checkpoints;
  options.run_name = job.recipe.at("run_name").text();
  options.set = checkpoint_set(job.recipe);
  options.keep = static_cast<int>(checkpoint.at("keep").integer());
  options.overwrite = checkpoint.at("save_overwrite");
  return options;
}

// What a user is shown as the newest checkpoint.
std::string newest_path(const Job& job) {
  const std::string latest = checkpoint_set(job.recipe).latest;
  return latest.empty() ? job.checkpoints : job.checkpoints + "/" + latest;
}

Supervisor::Options supervisor_options(const Job& job, const RankEnvironment& environment) {
  Supervisor::Options options;
  options.rank = environment.rank();
  options.world = job.world;
  options.host = environment.host;
  options.run_dir = job.run_dir;
  options.shelf = shelf_options(job);
  options.from = job.from;
  options.recipe_text = job.recipe_text;
  options.nonce = job.nonce;
  if (const Setting& journal = job.recipe.at("journal"); journal.has("keep"))
    options.keep_journals = static_cast<int>(journal.at("keep").integer());
  const Time timeout = Time::parse(job.recipe.at("train").at("hang_timeout"));
  options.hang_timeout = std::chrono::seconds(timeout.count());
  return options;
}

Compute::Options compute_options(const Job& job, const RankEnvironment& environment) {
  Compute::Options options;
  options.recipe = job.recipe;
  options.recipe_text = job.recipe_text;
  options.run_dir = job.run_dir;
  options.checkpoints = job.checkpoints;
  options.rank = environment.rank();
  options.world = job.world;
  options.memory_slot = environment.memory_slot;
  options.memory_budget = job.memory_budget(environment.rank());
  options.seed = job.seed;
  options.global_batch = job.global_batch;
  options.batches_per_epoch = job.train_sampler(environment.rank()).batches();
  options.train_samples = job.train_samples();
  options.train = job.train_of(environment.rank());
  options.evaluators = job.evaluators;
  options.spec = job.spec();
  options.make_model = job.make_model;
  options.data_digest = job.data_digest();
  options.from = job.from;
  options.save = save_terms(job.recipe);
  options.names = checkpoint_set(job.recipe).names;
  options.before_step = job.before_step;
  options.tasks = job.tasks;
  if (job.listeners) options.listeners = job.listeners(environment.rank());
  for (auto& algorithm : make_algorithms(job.recipe, job.plugin))
    options.listeners.algorithms.push_back(std::move(algorithm));
  if (job.plugin) job.plugin->add_listeners(job.recipe, environment.live, options.listeners);
  return options;
}

}  // namespace

RankActors add_rank(Scheduler& scheduler, const Job& job, RankEnvironment& environment) {
  const int rank = environment.rank();
  auto& disk = *environment.disk;
  auto& log = *environment.log;
  auto& recorder = *environment.recorder;
  Compute::Options computing = compute_options(job, environment);
  const Destinations destinations = destinations_of(job, environment, computing.listeners.destinations);
  const RankActors cast = reserve_cast(scheduler, job, rank, destinations);
  scheduler.record_deliveries(rank, recorder);
  scheduler.install(cast.loader, std::make_unique<Loader>(job.train_of(rank), job.train_sampler(rank),
                                                          cast.compute, recorder));
  for (std::size_t e = 0; e < job.evaluators.size(); ++e) {
    const Evaluator& evaluator = job.evaluators[e];
    scheduler.install(cast.eval_loaders[e],
                      std::make_unique<Loader>(evaluator.data_of(rank), job.eval_sampler(evaluator, rank),
                                               cast.compute, recorder));
  }
  scheduler.install(cast.compute, std::make_unique<Compute>(std::move(computing), cast, disk, log, recorder));
  scheduler.install(cast.sync, std::make_unique<Sync>(*environment.group, *environment.transport,
                                                      cast.supervisor, recorder));
  scheduler.install(cast.checkpointer,
                    std::make_unique<Checkpointer>(disk, job.checkpoints, rank, cast.supervisor, recorder));
  scheduler.install(cast.supervisor, std::make_unique<Supervisor>(supervisor_options(job, environment), cast,
                                                                  disk, log, recorder, environment.outcome));
  if (cast.has_reporter) {
    Reporter::Options options{job.run_dir,
                              job.checkpoints,
                              newest_path(job),
                              environment.quiet ? nullptr : stdout,
                              environment.terminal,
                              job.recipe.at("train").at("progress_bar").boolean(),
                              environment.process_started_s};
    if (const Setting& every = job.recipe.at("train").at("progress_interval"); !every.is_none())
      options.show_every_steps = Time::parse(every).count();
    options.warn = [&log](const std::string& what) { log.warning(what); };
    scheduler.install(cast.reporter, std::make_unique<Reporter>(options, disk, *environment.clock));
  }
  for (std::size_t i = 0; i < destinations.size(); ++i)
    scheduler.install(cast.log_writers[i], std::make_unique<LogWriter>(destinations[i], cast.compute, log));
  return cast;
}

}  // namespace tutti

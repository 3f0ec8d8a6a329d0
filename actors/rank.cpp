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
Destinations destinations_of(const Job& job, const RankPlace& place, const Seams& seams,
                             const Callbacks& own) {
  Destinations all =
      make_loggers(job.recipe, {seams.disk, seams.clock, seams.log, place.quiet ? nullptr : stdout,
                                place.quiet ? nullptr : stderr, place.start_child});
  for (const auto& one : own)
    if (auto destination = std::dynamic_pointer_cast<LoggerDestination>(one))
      all.push_back(std::move(destination));
  if (place.rank > 0) std::erase_if(all, [](const auto& one) { return one->rank_zero_only(); });
  return all;
}

RankActors reserve_cast(Scheduler& scheduler, const Job& job, const RankPlace& place,
                        const Destinations& destinations) {
  RankActors cast;
  cast.loader = scheduler.reserve("loader", place.rank);
  cast.compute = scheduler.reserve("compute", place.rank);
  cast.sync = scheduler.reserve("sync", place.rank);
  cast.checkpointer = scheduler.reserve("checkpointer", place.rank);
  cast.supervisor = scheduler.reserve("supervisor", place.rank);
  for (const auto& evaluator : job.evaluators) {
    const bool first = cast.eval_loaders.empty();
    cast.eval_loaders.push_back(
        scheduler.reserve(first ? "eval_loader" : "eval_loader." + evaluator.label, place.rank));
  }
  cast.has_reporter = place.rank == 0;
  if (cast.has_reporter) {
    cast.reporter = scheduler.reserve("reporter", place.rank);
    cast.durable_logs.push_back({cast.reporter, "metrics.jsonl", kMetricsWaitAtMost});
    scheduler.may_hang(cast.reporter, "metrics.jsonl", kMetricsEndWithin);
  }
  for (const auto& destination : destinations) {
    const std::string number = std::to_string(cast.log_writers.size());
    const ActorId writer = scheduler.reserve("logger_" + number, place.rank);
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

Supervisor::Options supervisor_options(const Job& job, const RankPlace& place) {
  Supervisor::Options options;
  options.rank = place.rank;
  options.world = job.world;
  options.host = place.host;
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

Engine::Options listeners_of(const Job& job, const RankPlace& place) {
  Engine::Options listeners;
  if (job.listeners) listeners = job.listeners(place.rank);
  for (auto& algorithm : make_algorithms(job.recipe, job.plugin))
    listeners.algorithms.push_back(std::move(algorithm));
  if (job.plugin) job.plugin->add_listeners(job.recipe, place.live, listeners);
  return listeners;
}

}  // namespace

RankActors add_rank(Scheduler& scheduler, const Job& job, const RankPlace& place, const Seams& seams,
                    RunOutcome& outcome) {
  Engine::Options listeners = listeners_of(job, place);
  const Destinations destinations = destinations_of(job, place, seams, listeners.destinations);
  const RankActors cast = reserve_cast(scheduler, job, place, destinations);
  scheduler.record_deliveries(place.rank, seams.recorder);
  scheduler.install(cast.loader,
                    std::make_unique<Loader>(job.train_of(place.rank), job.train_sampler(place.rank),
                                             cast.compute, seams.recorder));
  for (std::size_t e = 0; e < job.evaluators.size(); ++e) {
    const Evaluator& evaluator = job.evaluators[e];
    scheduler.install(cast.eval_loaders[e], std::make_unique<Loader>(evaluator.data_of(place.rank),
                                                                     job.eval_sampler(evaluator, place.rank),
                                                                     cast.compute, seams.recorder));
  }
  scheduler.install(cast.compute, std::make_unique<Compute>(
                                      job, Compute::Place{place.rank, place.memory_slot},
                                      std::move(listeners), cast, seams.disk, seams.log, seams.recorder));
  scheduler.install(cast.sync,
                    std::make_unique<Sync>(seams.group, seams.transport, cast.supervisor, seams.recorder));
  scheduler.install(cast.checkpointer, std::make_unique<Checkpointer>(seams.disk, job.checkpoints, place.rank,
                                                                      cast.supervisor, seams.recorder));
  scheduler.install(cast.supervisor,
                    std::make_unique<Supervisor>(supervisor_options(job, place), cast, seams.disk, seams.log,
                                                 seams.recorder, outcome));
  if (cast.has_reporter) {
    Reporter::Options options{job.run_dir,
                              job.checkpoints,
                              newest_path(job),
                              place.quiet ? nullptr : stdout,
                              place.terminal,
                              job.recipe.at("train").at("progress_bar").boolean(),
                              place.process_started_s};
    if (const Setting& every = job.recipe.at("train").at("progress_interval"); !every.is_none())
      options.show_every_steps = Time::parse(every).count();
    options.warn = [&log = seams.log](const std::string& what) { log.warning(what); };
    scheduler.install(cast.reporter, std::make_unique<Reporter>(options, seams.disk, seams.clock));
  }
  for (std::size_t i = 0; i < destinations.size(); ++i)
    scheduler.install(cast.log_writers[i],
                      std::make_unique<LogWriter>(destinations[i], cast.compute, seams.log));
  return cast;
}

}  // namespace tutti

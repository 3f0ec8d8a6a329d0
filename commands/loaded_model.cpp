#include "commands/loaded_model.h"

#include <cstdio>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "job/algorithms.h"
#include "job/checkpoint_options.h"
#include "job/resume.h"
#include "runtime/printable.h"
#include "tensors/torch_error.h"
#include "training/schedules/learning_rate.h"
#include "training/time/time.h"

namespace tutti {
namespace {

// With an empty folder where there is none.
Checkpoint checkpoint_named(const Job& job, const std::string& named) {
  if (!named.empty() && named != "auto") return find_checkpoint(PosixDisk(), named, tell_passed_over);
  return newest_good_checkpoint(PosixDisk(), job.checkpoints, tell_passed_over, checkpoint_set(job.recipe));
}

Engine::Options algorithms_of(const Job& job) {
  Engine::Options options;
  options.algorithms = make_algorithms(job.recipe, job.plugin);
  options.warn = print_warning;
  return options;
}

void restore(LoadedModel& model, const Checkpoint& checkpoint) {
  RestoreFilter of_training;
  of_training.ignored = [](const std::string& name) {
    return name.starts_with(kOptimizersPrefix) || name.starts_with("callbacks/");
  };
  restore_tensors(model.state, checkpoint.tensors, checkpoint.folder, of_training);
  if (checkpoint.state.empty()) return;
  const RunState saved = RunState::from_json(checkpoint.state);
  restore_listeners(model.engine, saved);
  restore_time(model.state, saved);
}

}  // namespace

Job single_process_job(const Setting& recipe, int ranks) {
  begin_process(recipe);
  JobOptions options;
  options.world = ranks;
  options.makes_folders = false;
  return make_job(recipe, options);
}

void tell_passed_over(const std::string& what) {
  std::fprintf(stderr, "passed over: %s\n", printable(what).c_str());
}

LoadedModel::LoadedModel(const Job& its_job) : job(its_job), engine(state, logger, algorithms_of(its_job)) {
  state.run_name = job.recipe.at("run_name").text();
  state.run_dir = job.run_dir;
  state.seed = job.seed;
  state.max_duration = planned_duration(job.recipe);
  state.dataloader_len = job.train_sampler(0).batches();
  state.global_batch = job.global_batch;
  state.train_samples = job.train_samples();
  state.dataset = job.train_of(0).get();
  state.composer = composer_mode(job.recipe);
  build(state, job.recipe, job.spec(), job.seed, job.make_model, [this] { engine.run_event(Event::kInit); });
}

std::string LoadedModel::load(const std::string& named) try {
  engine.run_event(Event::kBeforeLoad);
  add_listeners_tensors(state, engine);
  const Checkpoint checkpoint = checkpoint_named(job, named);
  if (!checkpoint.folder.empty()) restore(*this, checkpoint);
  engine.run_event(Event::kAfterLoad);
  return "weights: " + (checkpoint.folder.empty() ? "the recipe's initial ones" : checkpoint.folder);
} catch (const std::exception& error) {
  if (named.empty()) throw;
  Setting(named, "--checkpoint", {"command line"}).fail(one_line(error));
}

std::string naming_recipe(const Setting& recipe, const std::function<std::string()>& command) try {
  return command();
} catch (const UserError&) {
  throw;
} catch (const std::exception& error) {
  throw UserError(recipe.position.file + ": " + one_line(error));
}

}  // namespace tutti

#include "commands/loaded_model.h"

#include <cstdio>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "job/resume.h"
#include "runtime/printable.h"
#include "tensors/torch_error.h"

namespace tutti {
namespace {

// Has an empty folder if there is no checkpoint.
Checkpoint checkpoint_at(const Job& job, const std::string& path) {
  if (!path.empty() && path != "auto") return find_checkpoint(PosixDisk(), path, warn_ignored);
  return newest_good_checkpoint(PosixDisk(), job.checkpoints, warn_ignored, job.settings.checkpoint.set);
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
  begin_process(RunSettings::read(recipe));
  JobOptions options;
  options.world = ranks;
  options.makes_folders = false;
  return make_job(recipe, options);
}

void warn_ignored(const std::string& what) { std::fprintf(stderr, "ignored: %s\n", printable(what).c_str()); }

LoadedModel::LoadedModel(const Job& of_job) : job(of_job), engine(state, logger, algorithms_of(of_job)) {
  job.describe_to(state, 0);
  build(state, job.recipe, job.spec(), job.seed, job.make_model, [this] { engine.run_event(Event::kInit); });
}

std::string LoadedModel::load(const std::string& path) try {
  engine.run_event(Event::kBeforeLoad);
  add_listener_tensors(state, engine);
  const Checkpoint checkpoint = checkpoint_at(job, path);
  if (!checkpoint.folder.empty()) restore(*this, checkpoint);
  engine.run_event(Event::kAfterLoad);
  return "weights: " + (checkpoint.folder.empty() ? "the recipe's initial ones" : checkpoint.folder);
} catch (const std::exception& error) {
  if (path.empty()) throw;
  Setting(path, "--checkpoint", {"command line"}).fail(one_line(error));
}

std::string blame_recipe(const Setting& recipe, const std::function<std::string()>& command) try {
  return command();
} catch (const UserError&) {
  throw;
} catch (const std::exception& error) {
  throw UserError(recipe.position.file + ": " + one_line(error));
}

}  // namespace tutti

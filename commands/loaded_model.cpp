#include "commands/loaded_model.h"

#include <cstdio>
#include <utility>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/run_state.h"
#include "io/checkpoint/saved_state.h"
#include "job/algorithms.h"
#include "job/make_job.h"
#include "job/recipe_catalogs.h"
#include "job/resume.h"
#include "recipe/toml_reader.h"
#include "runtime/printable.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

Setting key_of(const std::string& path) {
  return path.empty() ? Setting() : Setting(path, "--checkpoint", {"command line"});
}

// An error is the key's, if there is one.
template <class Function>
auto blaming(const Setting& key, const Function& function) {
  try {
    return function();
  } catch (const std::exception& error) {
    if (key.is_none()) throw;
    key.fail(run_error(error));
  }
}

Checkpoint checkpoint_at(const Job& job, const std::string& path) {
  if (!path.empty() && path != "auto") return find_checkpoint(PosixDisk(), path, {warn_ignored});
  return newest_good_checkpoint(PosixDisk(), job.checkpoints, {warn_ignored}, job.settings.checkpoint.set);
}

Engine::Options algorithms_of(const Job& job, const Checkpoint& checkpoint, const LoadOptions& load,
                              State& state) {
  Engine::Options options;
  options.algorithms = make_algorithms(job);
  state.required_algorithms =
      add_required_algorithms(options.algorithms, job, checkpoint, load, print_warning);
  options.warn = print_warning;
  return options;
}

void restore(LoadedModel& model) {
  const Checkpoint& checkpoint = model.checkpoint;
  RestoreFilter filter;
  filter.ignored = [](const std::string& name) {
    return name.starts_with(kOptimizersPrefix) || name.starts_with("callbacks/");
  };
  const PosixDisk disk;
  restore_tensors(model.state, CheckpointTensors(disk, checkpoint), checkpoint.folder, filter);
  if (checkpoint.manifest.state.empty()) return;
  const RunState saved = state_of(checkpoint);
  use_state(checkpoint.folder, [&] {
    model.engine.restore(saved.listeners);
    copy_time(Restore(), saved, model.state);
  });
}

}  // namespace

Job single_process_job(const Setting& written, int ranks, const std::string& fitted,
                       const std::string& resume) {
  const Setting recipe = resolve_recipe(written);
  begin_process(RunSettings::read(recipe));
  JobOptions options;
  options.world = ranks;
  options.makes_folders = false;
  options.fitted = fitted;
  options.resume = resume;
  return make_job(recipe, options);
}

SavedRun find_saved_run(const std::string& path) {
  Checkpoint checkpoint = find_checkpoint(PosixDisk(), path, {warn_ignored});
  const RunState saved = state_of(checkpoint);
  Setting recipe = resolve_recipe(parse_recipe(saved.recipe, checkpoint.folder));
  return {std::move(checkpoint), std::move(recipe)};
}

void warn_ignored(const std::string& what) { std::fprintf(stderr, "ignored: %s\n", printable(what).c_str()); }

LoadedModel::LoadedModel(const Job& given_job, const std::string& path)
    : LoadedModel(given_job, blaming(key_of(path), [&] { return checkpoint_at(given_job, path); }), {},
                  key_of(path)) {}

LoadedModel::LoadedModel(const Job& given_job, Checkpoint weights, const LoadOptions& options,
                         Setting user_key)
    : job(given_job),
      key(std::move(user_key)),
      checkpoint(std::move(weights)),
      engine(state, logger, blaming(key, [&] { return algorithms_of(job, checkpoint, options, state); })) {
  state.device = job.device(0);
  state.device.use();
  job.describe_to(state, job.topology(0));
  build(state, job.recipe, job.spec(), job.seed, job.make_model, [this] { engine.run_event(Event::kInit); });
  if (!state.precision_note.empty()) print_warning(state.precision_note);
}

std::string LoadedModel::load() {
  return blaming(key, [this] {
    engine.run_event(Event::kBeforeLoad);
    add_listener_tensors(state, engine);
    if (!checkpoint.folder.empty())
      restore(*this);
    else if (!state.weights_note.empty())
      print_warning(state.weights_note);
    engine.run_event(Event::kAfterLoad);
    follow_surgery(state, job.seed);
    return "weights: " + (checkpoint.folder.empty() ? "the recipe's initial ones" : checkpoint.folder);
  });
}

std::string blame_recipe(const Setting& recipe, const std::function<std::string()>& command) try {
  return command();
} catch (const RunError& error) {
  if (dynamic_cast<const UserError*>(&error) || !error.position().file.empty()) throw;
  throw_run_error(error, recipe.position.file + ": ");
} catch (const std::exception& error) {
  throw_run_error(error, recipe.position.file + ": ");
}

}  // namespace tutti

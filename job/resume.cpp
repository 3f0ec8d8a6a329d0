#include "job/resume.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "data/tables/fitted_table.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/saved_state.h"
#include "job/foreign/imported_tensors.h"
#include "job/token_times.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {

namespace {

[[noreturn]] void refuse(const std::string& folder, const std::string& setting) {
  throw UserError({folder}, "it was trained with " + setting + ", which is not so in the recipe");
}

// The settings that determine the order of samples, which a recipe must not change within a run.
std::vector<std::string> data_lines(const Setting& recipe) {
  std::vector<std::string> lines;
  const Setting* train = recipe.find("data") ? recipe.find("data")->find("train") : nullptr;
  const auto add = [&lines](const Setting& section) {
    for (const char* key : {"shuffle", "shuffle_block", "drop_last", "sampling"})
      if (section.has(key)) lines.push_back(section.at(key).path + " = " + section.at(key).toml());
  };
  if (train) add(*train);
  if (train && train->has("sources"))
    for (const Setting& source : train->at("sources").array()) add(source);
  return lines;
}

// The settings on which the bits of an elastic run depend.
void require_same_grains(const Setting& theirs, const Setting& mine, const std::string& folder) {
  const auto grains = [](const Setting& recipe) {
    const Setting* section = recipe.find("reproducibility");
    return section && section->has("grains") ? section->at("grains").toml() : "none";
  };
  if (grains(theirs) != grains(mine)) refuse(folder, "reproducibility.grains = " + grains(theirs));
  if (grains(mine) == "none") return;
  const std::string threads = theirs.at("device").at("threads").toml();
  if (threads != mine.at("device").at("threads").toml()) refuse(folder, "device.threads = " + threads);
}

// The settings of a model, by path; of a plugin's options one each.
using ModelSettings = std::map<std::string, const Setting*>;

void collect(const Setting& table, ModelSettings& settings) {
  for (const auto& [key, value] : table.table()) {
    if (value.path.starts_with("model.weights")) continue;  // only initial ones
    if (value.is_table())
      collect(value, settings);
    else if (key.find("dropout") == std::string::npos && !value.is_none())
      settings[value.path] = &value;
  }
}

ModelSettings model_settings(const Setting& recipe) {
  ModelSettings settings;
  if (const Setting* model = recipe.find("model")) collect(*model, settings);
  return settings;
}

bool is_number(const Setting& setting) {
  return setting.is_integer() || std::holds_alternative<double>(setting.value);
}

// 1 is 1.0: recipes of older runs have numbers as they were written.
bool same_value(const Setting& a, const Setting& b) {
  return is_number(a) && is_number(b) ? a.number() == b.number() : a.toml() == b.toml();
}

// Files may have been moved.
void require_same_model(const Setting& theirs, const Setting& mine, const std::string& folder) {
  const ModelSettings own = model_settings(mine);
  for (const auto& [path, setting] : model_settings(theirs)) {
    const auto same = own.find(path);
    const bool is_path = same != own.end() && !same->second->written.empty();
    if (is_path || (same != own.end() && same_value(*same->second, *setting))) continue;
    refuse(folder, path + " = " + setting->toml());
  }
}

// What another program's checkpoint does not say of its run: as of this job.
RunState completed(RunState state, const Job& job) {
  state.run_name = job.settings.run_name;
  state.seed = job.seed;
  state.world = job.world;
  if (state.global_batch == 0) state.global_batch = job.global_batch;
  state.data_digest = job.data_digest;
  state.fitted = job.fitted;
  state.recipe = job.recipe_text;
  Timestamp& time = state.time;
  if (std::min({time.batch, time.sample, time.token, time.epoch}) < 0)
    throw UserError("the imported checkpoint has a negative time");
  const int64_t batches = std::max<int64_t>(1, job.train_sampler(0).batches());
  if (time.batch_in_epoch == batches)
    state.rest.at = ResumePoint::Place::kAtBatchEnd;  // its epoch ends first
  if (time.batch_in_epoch < 0) {
    time.epoch = time.epoch_in_iteration = time.batch / batches;
    time.batch_in_epoch = time.batch % batches;
  }
  if (time.sample == 0) {
    time.sample = time.batch * job.global_batch;
    time.sample_in_epoch = time.batch_in_epoch * job.global_batch;
  }
  return state;
}

// Numbers of the time that another program does not have, as completed() makes them.
std::vector<std::string> guesses(const RunState& saved, const RunState& now, bool counts_tokens) {
  std::vector<std::string> lines;
  if (saved.time.batch == 0) return lines;
  const auto number = [](int64_t value) { return std::to_string(value); };
  if (saved.time.batch_in_epoch < 0)
    lines.push_back("step " + number(now.time.batch_in_epoch) + " of epoch " + number(now.time.epoch) +
                    ", by this recipe's batches in an epoch");
  if (saved.time.sample == 0)
    lines.push_back(number(now.time.sample) + " samples, by this recipe's batch_size");
  if (saved.time.token == 0 && counts_tokens)
    lines.push_back("tokens, which are counted from 0: the checkpoint has no number of tokens");
  return lines;
}

class Resumption {
 public:
  Resumption(Trainee& trainee, const Disk& disk, const Checkpoint& checkpoint, const Job& job,
             const LoadOptions& load, const Warn& warn)
      : trainee_(trainee),
        checkpoint_(checkpoint),
        job_(job),
        state_(state_of(checkpoint)),
        imported_(!state_.imported.program.empty()),
        load_(load),
        warn_(warn) {
    if (!imported_) {
      tensors_ = std::make_unique<CheckpointTensors>(disk, checkpoint);
      return;
    }
    auto tensors =
        std::make_unique<ImportedTensors>(disk, checkpoint, state_, trainee, job.recipe.at("model"));
    report_ = tensors->report();
    tensors_ = std::move(tensors);
  }

  RunState weights() const {
    RunState model_state;
    model_state.required_algorithms = state_.required_algorithms;
    warn_of_unused_patterns(model_state);
    restore_model(trainee_, *tensors_, checkpoint_.folder, restore_filter());
    return RunState();
  }

  RunState whole() const {
    RunState state = imported_ ? completed(state_, job_) : state_;
    if (state.weights_only)
      throw UserError(
          {checkpoint_.folder},
          "it holds weights alone (save_weights_only); load_weights_only = true starts from them");
    warn_of_unused_patterns(state);
    require_same_run(state);
    RestoreFilter restoring = restore_filter();
    const StatePatterns left_out(state.saved_without);
    restoring.optional = [&left_out, this](const std::string& name) {
      return !name.starts_with(kModelPrefix) && (imported_ || left_out.fit(name));
    };
    restore_tensors(trainee_, *tensors_, checkpoint_.folder, restoring);
    for (const std::string& line : report_) warn(line);
    if (imported_) complete(state);
    if (restores_whole_model()) require_same_model(parse(state), job_.recipe, checkpoint_.folder);
    forget(state, [this](const std::string& name) { return load_.ignores(name); });
    return state;
  }

 private:
  // State of algorithms belongs to their tensors: without these the algorithms begin anew.
  void complete(RunState& state) const {
    std::erase_if(state.listeners, [this](const auto& listener) {
      const std::string prefix = listener.first + '/';
      return std::ranges::none_of(tensors_->entries(),
                                  [&](const auto& entry) { return entry.first.starts_with(prefix); });
    });
    const bool has_tokens = trainee_.model && counts_tokens(*trainee_.model, job_.spec());
    for (const std::string& line : guesses(state_, state, has_tokens))
      warn(state_.imported.path + " (" + state_.imported.program + "): guessed: " + line);
  }

  Setting parse(const RunState& state) const { return parse_recipe(state.recipe, checkpoint_.folder); }

  RestoreFilter restore_filter() const {
    RestoreFilter options;
    options.ignored = [this](const std::string& name) { return load_.ignores(name); };
    if (!load_.strict_model_weights)
      options.warn = [this](const std::string& what) { warn(what + "; it is ignored"); };
    return options;
  }

  void warn(const std::string& what) const {
    if (warn_) warn_(what);
  }

  bool restores_whole_model() const {
    const auto is_ignored = [this](const auto& algorithm) {
      return algorithm.first.starts_with(kModelPrefix) && load_.ignores(algorithm.first);
    };
    return load_.strict_model_weights && std::ranges::none_of(tensors_->entries(), is_ignored);
  }

  // True if both texts stand for the same table: the texts are a part of the digests.
  bool has_table_of_other_form(const RunState& state) const {
    return !state.fitted.empty() && state.fitted != job_.fitted &&
           FittedTable::from_json(state.fitted).to_json() == job_.fitted;
  }

  void require_same_run(const RunState& state) const {
    const std::string& folder = checkpoint_.folder;
    if (state.seed != job_.seed && !load_.ignored.fit("rank_zero_seed"))
      throw UserError({folder}, "it was trained with seed " + std::to_string(state.seed) +
                                    ", the recipe says " + std::to_string(job_.seed));
    if (load_.ignored.fit("dataset_state")) return;
    if (state.global_batch != job_.global_batch)
      throw UserError({folder}, "it was trained with batches of " + std::to_string(state.global_batch) +
                                    " samples, the recipe says " + std::to_string(job_.global_batch));
    if (state.data_digest != job_.data_digest && has_table_of_other_form(state))
      warn(folder +
           ": another version wrote its digest of the data in another form, so the columns and classes of "
           "the table were compared, and not its rows");
    else if (state.data_digest != job_.data_digest)
      throw UserError({folder},
                      "it was trained on other data than [data.train] names, or with other transforms; "
                      "load_weights_only = true starts anew from its weights");
    if (!imported_) require_same_grains(parse(state), job_.recipe, folder);
    const auto mine = data_lines(job_.recipe);
    for (const std::string& line : data_lines(parse(state)))
      if (std::ranges::count(mine, line) == 0) refuse(folder, line);
  }

  void warn_of_unused_patterns(const RunState& state) const {
    std::vector<std::string> names = names_in_state();
    for (const auto& [name, entry] : tensors_->entries()) names.push_back(name);
    for (const auto& [name, text] : state.listeners) names.push_back(name);
    for (const std::string& pattern : load_.ignored.idle(names))
      warn(checkpoint_.folder + ": load_ignore_keys names '" + pattern + "', which fits nothing in it");
    for (const auto& algorithm : state.required_algorithms) names.push_back("algorithms/" + algorithm.name);
    for (const std::string& algorithm : load_.without_algorithms) {
      const std::string path = "algorithms/" + algorithm;
      if (std::ranges::none_of(names, [&](const auto& one) { return (one + '/').starts_with(path + '/'); }))
        warn(checkpoint_.folder + ": load_exclude_algorithms names '" + algorithm +
             "', of which the checkpoint has nothing");
    }
  }

  Trainee& trainee_;
  const Checkpoint& checkpoint_;
  const Job& job_;
  const RunState state_;
  const bool imported_;
  std::unique_ptr<const TensorSource> tensors_;
  std::vector<std::string> report_;  // on an imported checkpoint
  const LoadOptions& load_;
  const Warn& warn_;
};

}  // namespace

RunState resume(Trainee& trainee, const Disk& disk, const Checkpoint& checkpoint, const Job& job,
                const LoadOptions& load, const Warn& warn) {
  const Resumption resumption(trainee, disk, checkpoint, job, load, warn);
  return load.weights_only ? resumption.weights() : resumption.whole();
}

void add_listener_tensors(Trainee& trainee, const Engine& engine) {
  for (const auto& [name, listener] : engine.stateful())
    for (const auto& [tensor_name, tensor] : listener->state_tensors())
      trainee.listeners.emplace_back(name + "/" + tensor_name, tensor);
}

}  // namespace tutti

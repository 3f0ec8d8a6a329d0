#include "job/resume.h"

#include <algorithm>
#include <cmath>

#include "io/checkpoint/checkpoint.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {

namespace {

using Tell = std::function<void(const std::string&)>;

// What a recipe may not change in mid-run: the order of the samples, and the function that is trained.
std::vector<std::string> data_lines(const Setting& recipe) {
  std::vector<std::string> lines;
  const Setting* train = recipe.find("data") ? recipe.find("data")->find("train") : nullptr;
  for (const char* key : {"shuffle", "drop_last", "sampling"})
    if (train && train->has(key)) lines.push_back(train->at(key).path + " = " + train->at(key).toml());
  return lines;
}

std::vector<std::string> model_lines(const Setting& recipe) {
  std::vector<std::string> lines;
  if (const Setting* model = recipe.find("model"))
    for (const auto& [key, value] : model->table())
      if (key != "weights" && key != "dropout" && !value.is_none())
        lines.push_back(value.path + " = " + value.toml());
  return lines;
}

void require_same(const std::vector<std::string>& theirs, const std::vector<std::string>& mine,
                  const std::string& folder) {
  for (const auto& line : theirs)
    if (std::find(mine.begin(), mine.end(), line) == mine.end())
      throw UserError(folder + ": it was trained with " + line + ", which is not so in the recipe");
}

class Resumption {
 public:
  Resumption(Trainee& trainee, const Checkpoint& checkpoint, const LoadOptions& load, const Tell& tell)
      : trainee_(trainee), checkpoint_(checkpoint), load_(load), tell_(tell) {}

  RunState weights() const {
    tell_of_idle_patterns({});
    restore_model(trainee_, checkpoint_.tensors, checkpoint_.folder, restore_filter());
    return RunState();
  }

  RunState whole(RunState state, const ResumeOptions& options) const {
    if (state.weights_only)
      throw UserError(
          checkpoint_.folder +
          ": it holds weights alone (save_weights_only); load_weights_only = true starts from them");
    tell_of_idle_patterns(state.listeners);
    require_same_run(state, options);
    RestoreFilter restoring = restore_filter();
    const StatePatterns left_out(state.saved_without);
    restoring.optional = [&left_out](const std::string& name) {
      return !name.starts_with(kModelPrefix) && left_out.fit(name);
    };
    restore_tensors(trainee_, checkpoint_.tensors, checkpoint_.folder, restoring);
    if (changes_no_model())
      require_same(model_lines(parse(state)), model_lines(options.recipe), checkpoint_.folder);
    forget(state, [this](const std::string& name) { return load_.ignores(name); });
    return state;
  }

 private:
  Setting parse(const RunState& state) const { return parse_recipe(state.recipe, checkpoint_.folder); }

  RestoreFilter restore_filter() const {
    RestoreFilter options;
    options.ignored = [this](const std::string& name) { return load_.ignores(name); };
    if (!load_.strict_model_weights)
      options.tell = [this](const std::string& what) { tell(what + "; it is passed over"); };
    return options;
  }

  void tell(const std::string& what) const {
    if (tell_) tell_(what);
  }

  bool changes_no_model() const {
    const auto is_passed_over = [this](const auto& one) {
      return one.first.starts_with(kModelPrefix) && load_.ignores(one.first);
    };
    return load_.strict_model_weights && std::ranges::none_of(checkpoint_.tensors, is_passed_over);
  }

  void require_same_run(const RunState& state, const ResumeOptions& options) const {
    const std::string& folder = checkpoint_.folder;
    if (state.seed != options.seed && !load_.ignored.fit("rank_zero_seed"))
      throw UserError(folder + ": it was trained with seed " + std::to_string(state.seed) +
                      ", the recipe says " + std::to_string(options.seed));
    if (load_.ignored.fit("dataset_state")) return;
    if (state.global_batch != options.global_batch)
      throw UserError(folder + ": it was trained with batches of " + std::to_string(state.global_batch) +
                      " samples, the recipe says " + std::to_string(options.global_batch));
    if (state.data_digest != options.data_digest)
      throw UserError(folder +
                      ": it was trained on other data than [data.train] names; load_weights_only = true " +
                      "starts anew from its weights");
    require_same(data_lines(parse(state)), data_lines(options.recipe), folder);
  }

  void tell_of_idle_patterns(const std::map<std::string, std::string>& listeners) const {
    std::vector<std::string> names = names_in_state();
    for (const auto& [name, tensor] : checkpoint_.tensors) names.push_back(name);
    for (const auto& [name, text] : listeners) names.push_back(name);
    for (const std::string& pattern : load_.ignored.idle(names))
      tell(checkpoint_.folder + ": it holds nothing that load_ignore_keys names '" + pattern + "'");
    for (const std::string& algorithm : load_.without_algorithms) {
      const std::string path = "algorithms/" + algorithm;
      if (std::ranges::none_of(names, [&](const auto& one) { return (one + '/').starts_with(path + '/'); }))
        tell(checkpoint_.folder + ": it holds nothing of an algorithm '" + algorithm +
             "', which load_exclude_algorithms names");
    }
  }

  Trainee& trainee_;
  const Checkpoint& checkpoint_;
  const LoadOptions& load_;
  const Tell& tell_;
};

Timestamp timestamp_of(const RunState& saved) {
  Timestamp time;
  time.iteration = saved.iteration;
  time.epoch = saved.epoch;
  time.batch = saved.step;
  time.sample = saved.sample;
  time.token = saved.token;
  time.epoch_in_iteration = saved.epoch_in_iteration;
  time.token_in_iteration = saved.token_in_iteration;
  time.batch_in_epoch = saved.batch_in_epoch;
  time.sample_in_epoch = saved.sample_in_epoch;
  time.token_in_epoch = saved.token_in_epoch;
  time.total_wct = saved.seconds;
  time.iteration_wct = saved.iteration_seconds;
  time.epoch_wct = saved.epoch_seconds;
  return time;
}

Timestamp before_last_step(const RunState& saved) {
  Timestamp time;
  time.iteration = saved.last_step.iteration;
  time.epoch = saved.last_step.epoch;
  time.batch = std::max<int64_t>(0, saved.step - 1);
  time.sample = saved.last_step.sample;
  time.token = saved.last_step.token;
  time.total_wct = saved.last_step.seconds;
  return time;
}

// JSON knows no other numbers.
double finite_or_0(double value) { return std::isfinite(value) ? value : 0; }

}  // namespace

RunState resume(Trainee& trainee, const Checkpoint& checkpoint, const ResumeOptions& options,
                const LoadOptions& load, const Tell& tell) {
  const Resumption resumption(trainee, checkpoint, load, tell);
  if (load.weights_only) return resumption.weights();
  return resumption.whole(RunState::from_json(checkpoint.state), options);
}

void add_listeners_tensors(Trainee& trainee, const Engine& engine) {
  for (const auto& [name, listener] : engine.stateful())
    for (const auto& [tensor_name, tensor] : listener->state_tensors())
      trainee.listeners.emplace_back(name + "/" + tensor_name, tensor);
}

void restore_listeners(const Engine& engine, const RunState& saved) {
  for (const auto& [name, listener] : engine.stateful()) {
    const auto found = saved.listeners.find(name);
    if (found != saved.listeners.end()) listener->restore(found->second);
  }
}

void restore_time(State& state, const RunState& saved) {
  state.timestamp = timestamp_of(saved);
  state.before_batch = before_last_step(saved);
  state.train_loss = saved.last_step.loss;
  state.flops = saved.last_step.flops;
  if (state.optimizer && saved.last_step.lr >= 0) state.optimizer->set_lr(saved.last_step.lr);
}

void put_time(const State& state, RunState& to) {
  const Timestamp& time = state.timestamp;
  to.iteration = time.iteration;
  to.epoch = time.epoch;
  to.step = time.batch;
  to.sample = time.sample;
  to.token = time.token;
  to.epoch_in_iteration = time.epoch_in_iteration;
  to.token_in_iteration = time.token_in_iteration;
  to.batch_in_epoch = time.batch_in_epoch;
  to.sample_in_epoch = time.sample_in_epoch;
  to.token_in_epoch = time.token_in_epoch;
  to.seconds = time.total_wct;
  to.iteration_seconds = time.iteration_wct;
  to.epoch_seconds = time.epoch_wct;
  const Timestamp& before = state.before_batch;
  to.last_step = {.loss = finite_or_0(state.train_loss),
                  .flops = finite_or_0(state.flops),
                  .lr = std::isfinite(state.optimizer->lr()) ? state.optimizer->lr() : LastStep().lr,
                  .iteration = before.iteration,
                  .epoch = before.epoch,
                  .sample = before.sample,
                  .token = before.token,
                  .seconds = before.total_wct};
}

}  // namespace tutti

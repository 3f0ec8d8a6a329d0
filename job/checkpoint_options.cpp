#include "job/checkpoint_options.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "io/checkpoint/checkpoint.h"
#include "io/formats/run_metrics.h"
#include "job/sections.h"
#include "models/zoo/catalog.h"
#include "recipe/placeholders.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {

BestSettings BestSettings::read(const Setting& table, const Setting& recipe) {
  BestSettings best{BestKeys::kind().read(table)};
  best.less_is_better =
      best.mode == "auto" ? tutti::less_is_better(recipe, best.metric.text()) : best.mode == "min";
  return best;
}

bool BestValues::observe(double value) {
  state_.measured = std::isfinite(value);
  if (!state_.measured) return false;
  state_.value = value;
  auto& best = state_.best;
  const auto at = std::ranges::find_if(best, [&](double other) { return settings_.better(value, other); });
  const bool is_one = at != best.end() || std::ssize(best) < settings_.keep;
  best.insert(at, value);
  best.resize(std::min(best.size(), static_cast<std::size_t>(settings_.keep)));
  return is_one;
}

std::vector<std::string> best_checkpoints(const BestSettings& settings,
                                          const std::vector<std::pair<std::string, double>>& values) {
  auto ordered = values;
  std::ranges::stable_sort(
      ordered, [&](const auto& one, const auto& other) { return settings.better(one.second, other.second); });
  ordered.resize(std::min(ordered.size(), static_cast<std::size_t>(settings.keep)));
  std::vector<std::string> names;
  for (const auto& [name, value] : ordered) names.push_back(name);
  return names;
}

namespace {

constexpr const char* kTimestamp = "timestamp";
constexpr std::string_view kAlgorithms = "algorithms/";

// The first key that limits loading; none if there is no such key.
Setting key_of_options(const CheckpointKeys& keys) {
  if (keys.load_weights_only) return keys.load_weights_only.key;
  if (!keys.load_strict_model_weights) return keys.load_strict_model_weights.key;
  if (!keys.load_ignore_keys->empty()) return keys.load_ignore_keys.key;
  if (!keys.load_exclude_algorithms->empty()) return keys.load_exclude_algorithms.key;
  return {};
}

void require_no_contradiction(const CheckpointKeys& keys, const StartFrom& from) {
  const Setting options = key_of_options(keys);
  const std::string asked = from.autoresume.path_as_written() + " = " + from.autoresume.toml();
  if (!options.is_none() && from.load_path.is_none())
    options.fail(
        "it needs load_path, which says what to load" +
        (from.autoresume.is_none() ? "" : ": " + asked + " resumes with all that the run itself has saved"));
  if (keys.save_weights_only && !from.autoresume.is_none())
    keys.save_weights_only.fail("a run cannot resume from weights alone, which " + asked +
                                " asks for; keep one of the two");
  if (!keys.save_metrics)
    keys.save_metrics.fail(
        "every checkpoint has them, since a run that resumes needs them; leave the key out");
}

void blame_key(const Setting& key, const std::function<void()>& read) try {
  read();
} catch (const UserError& error) {
  key.fail(error);
}

CheckpointSet checkpoint_set(const CheckpointKeys& keys, const std::string& run_name) {
  const auto& names = keys.save_filename;
  const auto& latest = keys.save_latest_filename;
  CheckpointSet set;
  blame_key(names.key, [&] { set.names = CheckpointNames(names, run_name); });
  blame_key(latest.key, [&] { set.latest = latest_name(latest, run_name); });
  if (set.names.fits(set.latest))
    latest.fail("checkpoints have such names: save_filename = " + names.key.toml());
  return set;
}

void require_names_unlike_best(const CheckpointSettings& settings) {
  const std::string is_the_link = "it is the name of the link to the best checkpoint";
  if (settings.set.latest == kBest) settings.save_latest_filename.fail(is_the_link);
  if (settings.set.names.fits(kBest)) settings.save_filename.fail(is_the_link);
}

// Names are read from what programs list, line by line.
void require_remote_names(const CheckpointSettings& settings, const std::string& run_name) {
  const auto& folder = settings.remote_folder;
  require_remote_path(folder.key, folder.value);
  if (!settings.save_overwrite.is_none() && settings.save_overwrite.boolean())
    settings.save_overwrite.fail_key(
        "in a remote save_folder nothing is moved aside; another folder keeps the runs apart");
  std::string name = settings.save_filename;
  replace_all(name, "{run_name}", run_name);
  for (std::size_t open = name.find('{'); open != name.npos; open = name.find('{'))
    name.erase(open, name.find('}', open) - open + 1);
  if (!name.empty() && (!is_plain_word(name) || name.find('/') != name.npos))
    folder.key.fail(
        "the checkpoints of a remote folder have names of letters, digits, and . _ - + @ = alone, not " +
        shown(settings.save_filename.value) + " of the run " + shown(run_name));
}

}  // namespace

bool LoadOptions::ignores(const std::string& name) const {
  if (ignored.fit(name)) return true;
  if (!name.starts_with(kAlgorithms)) return false;
  const std::string rest = name.substr(kAlgorithms.size());
  return std::ranges::count(without_algorithms, rest.substr(0, rest.find('/'))) > 0;
}

StartFrom start_from(const Setting& recipe, const std::string& resume) {
  const CheckpointKeys keys = CheckpointKeys::kind().read(recipe.at("checkpoint"));
  const bool is_auto = keys.resume.is_text() && keys.resume.text() == "auto";
  StartFrom from;
  from.options = {keys.load_weights_only, keys.load_strict_model_weights,
                  StatePatterns(keys.load_ignore_keys), keys.load_exclude_algorithms};
  if (keys.autoresume) from.autoresume = keys.autoresume.key;
  if (is_auto) from.autoresume = keys.resume;
  if (!is_auto) from.load_path = keys.resume;
  const Setting asked(resume, "--resume", {"command line"});
  if (resume == "auto") from.autoresume = asked;
  if (!resume.empty() && resume != "auto") {
    from.autoresume = Setting();
    from.load_path = asked;
  }
  require_no_contradiction(keys, from);
  const Setting weights = ModelKeys::kind().read(recipe.at("model")).weights;
  if (from.options.weights_only && !weights.is_none())
    weights.fail("the weights are those of " + from.load_path.path_as_written() +
                 " (load_weights_only = true); keep one of the two");
  return from;
}

std::vector<std::string> names_in_state() {
  return {kTimestamp, "rank_zero_seed", "dataset_state", "schedulers", "scaler", "accumulation", "metrics"};
}

void forget(RunState& state, const std::function<bool(const std::string& name)>& is_forgotten) {
  const RunState fresh;
  std::erase_if(state.listeners, [&](const auto& one) { return is_forgotten(one.first); });
  if (is_forgotten(kTimestamp)) {
    state.time = fresh.time;
    state.last_step = fresh.last_step;
    state.rest = fresh.rest;
    state.tasks = fresh.tasks;
    state.max_duration.clear();
  }
  if (is_forgotten("schedulers")) {
    state.plateau = fresh.plateau;
    state.lagging_rate = fresh.lagging_rate;
    state.next_lr = fresh.next_lr;
    state.last_step.lr = fresh.last_step.lr;
  }
  if (is_forgotten("scaler")) state.grad_scaler = fresh.grad_scaler;
  if (is_forgotten("accumulation")) state.accumulation = fresh.accumulation;
  if (is_forgotten("metrics")) state.metrics.clear();
}

bool SaveOptions::saves(const std::string& name) const {
  return (!weights_only || name.starts_with(kModelPrefix)) && !ignored.fit(name);
}

void SaveOptions::remove_unsaved(RunState& state) const {
  state.weights_only = weights_only;
  state.saved_without = ignored.texts();
  // The time names the checkpoint, so stays.
  forget(state, [this](const std::string& name) { return name != kTimestamp && !saves(name); });
}

CheckpointSettings CheckpointSettings::read(const Setting& recipe, const TrainSettings& train) {
  CheckpointSettings settings{CheckpointKeys::kind().read(recipe.at("checkpoint"))};
  settings.interval = train.interval(settings.interval);
  const std::string run_name = RunKeys::kind().read(recipe).run_name;
  settings.set = checkpoint_set(settings, run_name);
  if (auto& folder = settings.save_folder; folder->has_value() && is_remote_path(**folder)) {
    settings.remote_folder.key = folder.key;
    settings.remote_folder.value = **folder;
    replace_all(settings.remote_folder.value, "{run_name}", run_name);
    require_remote_names(settings, run_name);
    folder.value.reset();
  }
  settings.save = {settings.save_weights_only, StatePatterns(settings.save_ignore_keys)};
  if (!settings.best_table.is_none()) {
    settings.best = BestSettings::read(settings.best_table, recipe);
    require_names_unlike_best(settings);
  }
  return settings;
}

}  // namespace tutti

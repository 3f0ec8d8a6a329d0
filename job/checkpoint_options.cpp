#include "job/checkpoint_options.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "io/checkpoint/checkpoint.h"
#include "io/formats/run_metrics.h"
#include "runtime/error.h"

namespace tutti {

BestSettings BestSettings::read(const Setting& table) {
  BestSettings settings;
  settings.metric = table.at("metric");
  const std::string& mode = table.at("mode").text();
  settings.less_is_better = mode == "auto" ? tutti::less_is_better(settings.metric.text()) : mode == "min";
  settings.keep = static_cast<int>(table.at("keep").integer());
  return settings;
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

StatePatterns patterns_of(const Setting& setting) { return StatePatterns(setting.texts()); }

LoadOptions load_options(const Setting& checkpoint) {
  return {checkpoint.at("load_weights_only").boolean(), checkpoint.at("load_strict_model_weights").boolean(),
          patterns_of(checkpoint.at("load_ignore_keys")), checkpoint.at("load_exclude_algorithms").texts()};
}

// The first key of `checkpoint` that limits loading; null if none.
const Setting* key_of_options(const Setting& checkpoint, const LoadOptions& options) {
  if (options.weights_only) return &checkpoint.at("load_weights_only");
  if (!options.strict_model_weights) return &checkpoint.at("load_strict_model_weights");
  if (!options.ignored.empty()) return &checkpoint.at("load_ignore_keys");
  if (!options.without_algorithms.empty()) return &checkpoint.at("load_exclude_algorithms");
  return nullptr;
}

void require_no_contradiction(const Setting& recipe, const StartFrom& from) {
  const Setting& checkpoint = recipe.at("checkpoint");
  const Setting* options = key_of_options(checkpoint, from.options);
  if (options && from.load_path.is_none())
    options->fail(from.autoresume.is_none()
                      ? "it needs load_path, which says what to load"
                      : "it needs load_path, which says what to load: " + from.autoresume.path_as_written() +
                            " = " + from.autoresume.toml() +
                            " resumes with all that the run itself has saved");
  const Setting& saves_weights = checkpoint.at("save_weights_only");
  if (saves_weights.boolean() && !from.autoresume.is_none())
    saves_weights.fail("a run cannot resume from weights alone, which " + from.autoresume.path_as_written() +
                       " = " + from.autoresume.toml() + " asks for; keep one of the two");
  const Setting& saves_metrics = checkpoint.at("save_metrics");
  if (!saves_metrics.boolean())
    saves_metrics.fail("every checkpoint has them, since a run that resumes needs them; leave the key out");
  const Setting& weights = recipe.at("model").at("weights");
  if (from.options.weights_only && !weights.is_none())
    weights.fail("the weights are those of " + from.load_path.path_as_written() +
                 " (load_weights_only = true); keep one of the two");
}

void blame_key(const Setting& key, const std::function<void()>& read) try {
  read();
} catch (const UserError& error) {
  key.fail(error);
}

CheckpointSet checkpoint_set(const Setting& section, const std::string& run_name) {
  const Setting& names = section.at("save_filename");
  const Setting& latest = section.at("save_latest_filename");
  CheckpointSet set;
  blame_key(names, [&] { set.names = CheckpointNames(names.text(), run_name); });
  blame_key(latest, [&] { set.latest = latest_name(latest.text(), run_name); });
  if (set.names.fits(set.latest))
    latest.fail("it is a name that checkpoints have: save_filename = " + names.toml());
  return set;
}

void require_names_unlike_best(const Setting& section, const CheckpointSet& set) {
  const std::string is_the_link = "it is the name of the link to the best checkpoint";
  if (set.latest == kBest) section.at("save_latest_filename").fail(is_the_link);
  if (set.names.fits(kBest)) section.at("save_filename").fail(is_the_link);
}

}  // namespace

bool LoadOptions::ignores(const std::string& name) const {
  if (ignored.fit(name)) return true;
  if (!name.starts_with(kAlgorithms)) return false;
  const std::string rest = name.substr(kAlgorithms.size());
  return std::ranges::count(without_algorithms, rest.substr(0, rest.find('/'))) > 0;
}

StartFrom start_from(const Setting& recipe, const std::string& resume) {
  const Setting& checkpoint = recipe.at("checkpoint");
  const Setting& path = checkpoint.at("resume");
  const bool is_auto = !path.is_none() && path.text() == "auto";
  StartFrom from;
  from.options = load_options(checkpoint);
  if (checkpoint.at("autoresume").boolean()) from.autoresume = checkpoint.at("autoresume");
  if (is_auto) from.autoresume = path;
  if (!path.is_none() && !is_auto) from.load_path = path;
  const Setting asked(resume, "--resume", {"command line"});
  if (resume == "auto") from.autoresume = asked;
  if (!resume.empty() && resume != "auto") {
    from.autoresume = Setting();
    from.load_path = asked;
  }
  require_no_contradiction(recipe, from);
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
  const Setting& section = recipe.at("checkpoint");
  CheckpointSettings settings;
  settings.interval = train.interval(Time::parse(section.at("interval")));
  if (section.has("save_folder")) settings.folder = section.at("save_folder").text();
  settings.set = checkpoint_set(section, recipe.at("run_name").text());
  settings.save = {section.at("save_weights_only").boolean(), patterns_of(section.at("save_ignore_keys"))};
  settings.keep = static_cast<int>(section.at("keep").integer());
  settings.overwrite = section.at("save_overwrite");
  if (section.has("best")) settings.best = BestSettings::read(section.at("best"));
  if (settings.best) require_names_unlike_best(section, settings.set);
  return settings;
}

}  // namespace tutti

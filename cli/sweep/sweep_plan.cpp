#include "cli/sweep/sweep_plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/comparison/run_values.h"
#include "analysis/comparison/short_names.h"
#include "analysis/run_folder.h"
#include "io/replaced_file.h"
#include "job/recipe_catalogs.h"
#include "recipe/command_keys.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/process/shell.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr const char* kBaseFile = "base.toml";  // the recipe as resolved before any trial

Setting text_setting(const std::string& text) { return {text, "", {}}; }

Setting texts_setting(const std::vector<std::string>& texts) {
  Setting::Array array;
  for (const std::string& text : texts) array.push_back(text_setting(text));
  return {array, "", {}};
}

Setting number_setting(int64_t number) { return {number, "", {}}; }

std::string joined_words(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : " ") + text;
  return all.empty() ? "nothing" : all;
}

// The recipe's key that ends so; the ending itself if there is none, for the error of --set.
std::string whole_key(const std::string& ending, const RecipeValues& values) {
  if (values.contains(ending)) return ending;
  std::vector<std::string> keys, of_training;
  for (const auto& [key, value] : values) {
    if (!ends_with_name(key, ending)) continue;
    keys.push_back(key);
    if (!key.starts_with("data.eval.") && !key.starts_with("evaluators.")) of_training.push_back(key);
  }
  return keys.empty() ? ending : meant_name(ending, keys, of_training, "the recipe");
}

// The options that distinguish sweeps. The metric may be another once its name turns out to be wrong.
std::vector<std::pair<std::string, std::string>> options_of(const SweepPlan& plan) {
  return {{"recipe", plan.recipe.path},
          {"--set", joined_words(plan.recipe.overrides)},
          {"--grid", joined_words(plan.space.grid)},
          {"--random", joined_words(plan.space.random)},
          {"-n", std::to_string(plan.space.draws)},
          {"--seed", std::to_string(plan.space.seed)},
          {"--ranks", std::to_string(plan.ranks)},
          {"--halving", plan.halves ? "on" : "off"},
          {"--eta", std::to_string(plan.eta)}};
}

std::string base_text(const SweepPlan& plan) { return write_recipe(with_command_names(plan.base())); }

// Trials are folders in the sweep's: names are no paths.
std::string trial_name(const Setting& name) {
  const std::string& text = name.text();
  if (text.empty() || text.front() == '.' || text.find('/') != text.npos)
    name.fail("expected the name of a trial");
  return text;
}

int number_within(const Setting& number, int least, int most) {
  const int64_t value = number.integer();
  if (value < least || value > most)
    number.fail("expected an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return static_cast<int>(value);
}

}  // namespace

Setting SweepPlan::base() const { return resolve_recipe(read_recipe(recipe.path, recipe.overrides)); }

Setting SweepPlan::resolved(const Trial& trial) const {
  std::vector<std::string> overrides = recipe.overrides;
  overrides.insert(overrides.end(), trial.set.begin(), trial.set.end());
  return resolve_recipe(read_recipe(recipe.path, overrides));
}

void SweepPlan::plan_trials() {
  const Setting whole = base();
  if (const Setting& folder = whole.at("checkpoint").at("save_folder"); !folder.is_none())
    folder.fail("the trials of a sweep would share it; leave the key out");
  const RecipeValues values = recipe_values(whole);
  space = space.with_keys([&](const std::string& key) { return whole_key(key, values); });
  std::set<std::string> names;
  for (const Assignments& setting : space.settings()) {
    Trial trial{name_of(setting), {}};
    for (const auto& [key, value] : setting) trial.set.push_back(key + '=' + value);
    const std::string stem = trial.name;
    for (int copy = 2; !names.insert(trial.name).second; ++copy)
      trial.name = stem + '-' + std::to_string(copy);
    resolved(trial);
    trials.push_back(std::move(trial));
  }
}

std::vector<std::string> SweepPlan::rungs_ahead() const {
  std::vector<std::string> stops;
  if (!halves) return stops;
  double share = 1;
  for (auto left = static_cast<int64_t>(trials.size()); left >= eta; left /= eta) {
    share /= eta;
    stops.insert(stops.begin(), formatted("%.6gdur", share));
  }
  return stops;
}

void SweepPlan::write(Disk& disk, const std::string& folder) const {
  Setting file(Setting::Table{}, "", {});
  const auto add = [](Setting& table, const char* key, Setting value) {
    table.table().emplace_back(key, std::move(value));
  };
  add(file, "recipe", text_setting(recipe.path));
  add(file, "set", texts_setting(recipe.overrides));
  add(file, "grid", texts_setting(space.grid));
  add(file, "random", texts_setting(space.random));
  add(file, "draws", number_setting(space.draws));
  add(file, "seed", number_setting(static_cast<int64_t>(space.seed)));
  add(file, "ranks", number_setting(ranks));
  add(file, "halves", {halves, "", {}});
  add(file, "metric", text_setting(metric));
  add(file, "eta", number_setting(eta));
  Setting::Array all;
  for (const Trial& trial : trials) {
    Setting table(Setting::Table{}, "", {});
    add(table, "name", text_setting(trial.name));
    add(table, "set", texts_setting(trial.set));
    all.push_back(std::move(table));
  }
  add(file, "trials", {all, "", {}});
  all.clear();
  for (const Rung& rung : rungs) {
    Setting table(Setting::Table{}, "", {});
    add(table, "stop_at", text_setting(rung.stop_at));
    add(table, "kept", texts_setting(rung.kept));
    all.push_back(std::move(table));
  }
  if (!all.empty()) add(file, "rungs", {all, "", {}});
  disk.make_folders(folder);
  if (!is_sweep_folder(folder)) replace_file(disk, folder + '/' + kBaseFile, base_text(*this));
  replace_file(disk, folder + '/' + kSweepFile,
               "# Written by `tutti sweep`. Continue with: tutti sweep " + on_one_line(shell_word(folder)) +
                   '\n' + write_recipe(file));
}

SweepPlan SweepPlan::read(const std::string& folder) {
  if (!is_sweep_folder(folder)) throw UserError(folder + ": no folder of a sweep: it has no " + kSweepFile);
  const Setting file = read_recipe(folder + '/' + kSweepFile);
  SweepPlan plan;
  plan.recipe = {file.at("recipe").text(), file.at("set").texts()};
  plan.space = {file.at("grid").texts(), file.at("random").texts(), file.at("draws").integer(),
                static_cast<uint64_t>(file.at("seed").integer())};
  plan.ranks = number_within(file.at("ranks"), 1, kMostRanks);
  plan.halves = file.at("halves").boolean();
  plan.metric = file.at("metric").text();
  plan.eta = number_within(file.at("eta"), 2, kMostEta);
  for (const Setting& trial : file.at("trials").array())
    plan.trials.push_back({trial_name(trial.at("name")), trial.at("set").texts()});
  if (file.has("rungs"))
    for (const Setting& rung : file.at("rungs").array())
      plan.rungs.push_back({rung.at("stop_at").text(), rung.at("kept").texts()});
  return plan;
}

void SweepPlan::require_only_folder() const {
  SweepPlan plain;
  plain.recipe.path = recipe.path;
  const auto given = options_of(*this), defaults = options_of(plain);
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given[i] != defaults[i])
      throw UserError(given[i].first + ": " + recipe.path +
                      " is the folder of a sweep, which has its options; give --jobs and --metric alone");
}

void SweepPlan::require_same(const SweepPlan& other, const std::string& folder) const {
  const auto ours = options_of(*this), theirs = options_of(other);
  const std::string ways =
      "; `tutti sweep " + shell_word(folder) + "` continues it, --run-dir gives another a folder";
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (ours[i].second != theirs[i].second)
      throw UserError(folder + ": its sweep was begun with " + ours[i].first + ' ' + shown(ours[i].second) +
                      ", and this is with " + shown(theirs[i].second) + ways);
  const auto changes =
      recipe_difference(read_recipe(folder + '/' + kBaseFile), parse_recipe(base_text(other), recipe.path));
  if (!changes.empty())
    throw UserError(folder + ": the recipe has changed since its sweep was begun: " + changes.front() +
                    "; undo the change, or give --run-dir");
}

}  // namespace tutti

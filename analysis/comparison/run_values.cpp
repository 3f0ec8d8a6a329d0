#include "analysis/comparison/run_values.h"

#include <algorithm>
#include <set>

#include "analysis/comparison/short_names.h"
#include "analysis/run_folder.h"
#include "io/formats/matrix_metrics.h"
#include "io/formats/run_metrics.h"
#include "recipe/command_keys.h"

namespace tutti {
namespace {

constexpr const char* kOfAnyRun[] = {"run_name", "train.stop_at"};

bool has_tables(const Setting& setting) {
  return setting.is_array() && !setting.array().empty() &&
         std::ranges::all_of(setting.array(), [](const Setting& item) { return item.is_table(); });
}

void collect_values(const Setting& setting, const std::string& path, RecipeValues& values) {
  if (setting.is_table()) {
    for (const auto& [key, member] : setting.table()) collect_values(member, path_below(path, key), values);
  } else if (has_tables(setting)) {
    for (std::size_t i = 0; i < setting.array().size(); ++i)
      collect_values(setting.array()[i], path_below(path, std::to_string(i)), values);
  } else if (!setting.is_none()) {
    values[path] = setting.toml();
  }
}

std::string text_of_key(const Setting& table, const char* key) {
  const Setting* value = table.is_table() ? table.find(key) : nullptr;
  return value && value->is_text() ? value->text() : "";
}

// The metric that a recipe watches, and the direction if the recipe has it: "auto" else.
struct Watched {
  std::string metric, mode = "auto";
};

Watched watched_by(const Setting& recipe) {
  const Setting* checkpoint = recipe.is_table() ? recipe.find("checkpoint") : nullptr;
  const Setting* best = checkpoint && checkpoint->is_table() ? checkpoint->find("best") : nullptr;
  if (best && best->is_table()) return {text_of_key(*best, "metric"), text_of_key(*best, "mode")};
  const Setting* callbacks = recipe.is_table() ? recipe.find("callbacks") : nullptr;
  if (callbacks && callbacks->is_array())
    for (const Setting& callback : callbacks->array())
      if (text_of_key(callback, "kind") == "early_stopper")
        return {text_of_key(callback, "dataloader_label") + '/' + text_of_key(callback, "monitor")};
  return {};
}

bool is_of_evaluation(const std::string& metric) {
  return !metric.starts_with("train/") && !matrix_cell(metric);
}

}  // namespace

RecipeValues recipe_values(const Setting& recipe) {
  RecipeValues values;
  collect_values(with_command_names(recipe), "", values);
  return values;
}

std::vector<std::string> differing_keys(const std::vector<RecipeValues>& recipes) {
  std::set<std::string> keys;
  for (const RecipeValues& recipe : recipes)
    for (const auto& [key, value] : recipe) keys.insert(key);
  const auto value = [](const RecipeValues& recipe, const std::string& key) {
    const auto entry = recipe.find(key);
    return entry == recipe.end() ? std::string() : entry->second;
  };
  std::vector<std::string> differing;
  for (const std::string& key : keys)
    if (std::ranges::count(kOfAnyRun, key) == 0 && std::ranges::any_of(recipes, [&](const auto& recipe) {
          return value(recipe, key) != value(recipes.front(), key);
        }))
      differing.push_back(key);
  return differing;
}

std::string without_quotes(const std::string& toml) {
  const bool is_plain = toml.size() > 2 && toml.front() == '"' && toml.back() == '"' &&
                        toml.find_first_of("\"\\", 1) == toml.size() - 1;
  return is_plain ? toml.substr(1, toml.size() - 2) : toml;
}

Headline headline_of(const std::vector<const Setting*>& recipes, const std::vector<std::string>& measured) {
  for (const Setting* recipe : recipes) {
    const Watched watched = watched_by(*recipe);
    const std::string name = evaluated_name(watched.metric);
    for (const std::string& metric : measured)
      if (!name.empty() && ends_with_name(metric, name))
        return {metric, watched.mode == "min" || (watched.mode != "max" && less_is_better(*recipe, metric))};
  }
  Headline first;
  for (const std::string& metric : measured) {
    if (!is_of_evaluation(metric)) continue;
    if (!less_is_better(*recipes[0], metric)) return {metric, false};
    if (first.name == "loss") first.name = metric;
  }
  return first;
}

}  // namespace tutti

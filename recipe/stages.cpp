#include "recipe/stages.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "recipe/overlay.h"
#include "runtime/user_errors.h"

namespace tutti {
namespace {

constexpr const char* kStages = "stages";
constexpr const char* kStage = "stage";
constexpr const char* kName = "name";
constexpr const char* kCheckpoint = "checkpoint";
constexpr const char* kPaths[] = {"resume", "load_path"};  // of the checkpoint to start from
constexpr const char* kLoading[] = {"load_weights_only", "load_strict_model_weights", "load_ignore_keys",
                                    "load_exclude_algorithms"};

void erase_keys(Setting* section, std::span<const char* const> keys) {
  if (!section || !section->is_table()) return;
  std::erase_if(section->table(),
                [&](const auto& member) { return std::ranges::count(keys, member.first) > 0; });
}

Setting* section_of(Setting& recipe, const char* name) {
  Setting* section = recipe.find(name);
  return section && section->is_table() ? section : nullptr;
}

bool is_auto(const Setting& setting) { return setting.is_text() && setting.text() == "auto"; }

// The recipe for later stages: what says where a run starts is left out.
Setting without_start(Setting recipe) {
  if (Setting* checkpoint = section_of(recipe, kCheckpoint)) {
    erase_keys(checkpoint, kLoading);
    for (const char* key : kPaths)
      if (const Setting* path = checkpoint->find(key); path && !is_auto(*path))
        erase_keys(checkpoint, {{key}});
  }
  erase_keys(section_of(recipe, "model"), {{"weights"}});
  return recipe;
}

void refuse_start(Setting& stage) {
  constexpr const char* kWhy = "a stage starts from the weights of the stage before; leave the key out";
  if (const Setting* checkpoint = section_of(stage, kCheckpoint))
    for (const char* key : kPaths)
      if (const Setting* path = checkpoint->find(key); path && !is_auto(*path)) path->fail_key(kWhy);
  if (const Setting* model = section_of(stage, "model"))
    if (const Setting* weights = model->find("weights")) weights->fail_key(kWhy);
}

// Adds load_weights_only = true where the recipe does not say.
void load_weights_alone(Setting& recipe, const Position& position) {
  Setting* checkpoint = recipe.find(kCheckpoint);
  if (!checkpoint) {
    recipe.table().emplace_back(kCheckpoint, Setting(Setting::Table{}, kCheckpoint, position));
    checkpoint = &recipe.table().back().second;
  }
  if (checkpoint->is_table() && !checkpoint->find(kLoading[0]))
    checkpoint->table().emplace_back(kLoading[0],
                                     Setting(true, path_below(kCheckpoint, kLoading[0]), position));
}

const Setting::Array& tables_of(const Setting& stages) {
  if (!stages.is_array() || stages.array().empty())
    stages.fail("expected [[stages]], a table for each stage");
  for (const Setting& stage : stages.array())
    if (!stage.is_table()) stage.fail("expected a table, with the keys that the stage changes");
  return stages.array();
}

void refuse_keys_of_whole_run(const Setting& stage) {
  for (const char* key : {"run_name", kStages, kStage})
    if (const Setting* own = stage.find(key))
      own->fail_key("the key is of the whole run; a stage cannot have it");
}

Stage stage_of(const Setting& recipe, Setting table, bool is_first) {
  refuse_keys_of_whole_run(table);
  if (!is_first) refuse_start(table);
  Stage stage;
  if (const Setting* name = table.find(kName)) stage.name = name->text();
  erase_keys(&table, {{kName}});
  place(table, "");
  stage.recipe = is_first ? recipe : without_start(recipe);
  erase_keys(&stage.recipe, {{kStages, kStage}});
  overlay(stage.recipe, table);
  return stage;
}

}  // namespace

bool has_stages(const Setting& recipe) {
  return recipe.is_table() && recipe.has(kStages) && !recipe.has(kStage);
}

std::vector<Stage> written_stages(const Setting& recipe) {
  std::vector<Stage> stages;
  MistakeCollector mistakes;
  for (const Setting& table : tables_of(recipe.at(kStages)))
    mistakes.collect([&] {
      stages.push_back(stage_of(recipe, table, stages.empty()));
      if (stages.size() > 1) load_weights_alone(stages.back().recipe, table.position);
    });
  mistakes.throw_all();
  return stages;
}

Setting chosen_stage(const Setting& recipe) {
  if (!recipe.is_table()) return recipe;
  const Setting *stages = recipe.find(kStages), *stage = recipe.find(kStage);
  if (!stages && stage && !stage->is_none()) stage->fail_key("the recipe has no [[stages]]");
  if (!stages || stages->is_none()) return recipe;
  const auto count = std::ssize(tables_of(*stages));
  const std::string numbers = "1 to " + std::to_string(count);
  if (!stage)
    stages->fail_key("this command takes one stage, with the number " + numbers + ": --set stage=1");
  if (stage->integer() < 1 || stage->integer() > count)
    stage->fail("expected the number of a stage, " + numbers);
  const auto index = static_cast<std::size_t>(stage->integer() - 1);
  return stage_of(recipe, stages->array()[index], index == 0).recipe;
}

}  // namespace tutti

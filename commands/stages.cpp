#include "commands/stages.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>

#include "analysis/run_folder.h"
#include "commands/check.h"
#include "commands/loaded_model.h"
#include "commands/train.h"
#include "data/readers/make_dataset.h"
#include "io/checkpoint/checkpoint_catalog.h"
#include "io/json/json_line.h"
#include "io/replaced_file.h"
#include "io/run_paths.h"
#include "job/make_job.h"
#include "job/recipe_catalogs.h"
#include "job/sections.h"
#include "recipe/command_keys.h"
#include "recipe/placeholders.h"
#include "recipe/set_key.h"
#include "runtime/disk.h"
#include "runtime/launcher.h"
#include "runtime/printable.h"
#include "runtime/user_errors.h"
#include "sharding/catalog.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

bool is_first_rank() { return launched_rank().value_or(0) == 0; }

bool resumes_by_itself(const Setting& recipe) {
  const CheckpointKeys keys = CheckpointKeys::kind().read(recipe.at("checkpoint"));
  return keys.autoresume || (keys.resume.is_text() && keys.resume.text() == "auto");
}

// Not if it was stopped, or ended with nothing finite to train on.
bool is_over(const std::string& run_dir) {
  const RunEnding ending = ending_of(PosixDisk(), run_dir);
  const bool is_stopped = ending.ended == "request" || ending.ended == "stop_at";
  return ending.condition == RunCondition::kEnded && !ending.ended.empty() && !is_stopped &&
         json_integer(ending.result, "skipped_at_end", 0) == 0;
}

bool is_dpo_of_its_start(const Setting& algorithm) {
  return algorithm.at("kind").text() == "dpo" && !algorithm.has("reference");
}

// A stage that can be opened before the stage before has weights: without a reference that they are.
Setting before_its_start(Setting recipe) {
  std::erase_if(std::get<Setting::Array>(recipe.find("algorithms")->value), is_dpo_of_its_start);
  Setting& checkpoint = *recipe.find("checkpoint");
  set_key(checkpoint, "load_weights_only", false);
  set_key(checkpoint, "load_strict_model_weights", true);
  for (const char* names : {"load_ignore_keys", "load_exclude_algorithms"})
    set_key(checkpoint, names, Setting::Array());
  return recipe;
}

// Opening starts a command, and of per-rank files another rank may have the others.
bool can_be_opened_early(const Setting& recipe) {
  Setting::Array sections = recipe.at("evaluators").array();
  for (const char* part : {"train", "eval"}) sections.push_back(recipe.at("data").at(part));
  return std::ranges::none_of(sections, [](const Setting& section) {
    return section.is_table() && (section.has("command") || has_per_rank_data(section));
  });
}

// By the first rank the model too, which is whole there, unless the ranks of the run share it.
std::string tried(const Setting& recipe, int ranks) {
  const bool is_shared =
      ranks > 1 && ShardingSettings::kind().read(recipe.at("sharding")).strategy != ShardingStrategy::kNone;
  if (is_first_rank() && !is_shared) return check_text(recipe, {.ranks = ranks});
  single_process_job(recipe, ranks);
  return "";
}

// "stage 2 of 3 (head)"
std::string stage_title(const std::vector<Stage>& stages, std::size_t stage) {
  const std::string& name = stages[stage].name;
  return "stage " + std::to_string(stage + 1) + " of " + std::to_string(stages.size()) +
         (name.empty() ? "" : " (" + on_one_line(name) + ')');
}

// The recipes that are trained, in which folders, and the first that is not over.
struct StagePlan {
  std::vector<Stage> stages;
  std::string run_dir, resume;
  std::size_t first = 0;

  explicit StagePlan(const TrainOptions& options);

  std::string folder(std::size_t stage) const {
    return run_dir + '/' + kStageFolder + std::to_string(stage + 1);
  }
  std::string title(std::size_t stage) const { return stage_title(stages, stage); }
  Setting recipe(std::size_t stage) const;
  void require_data(int ranks) const;
  void warn_of_changes() const;
  void save() const;

 private:
  void find_first();
  // Where the checkpoints of a stage are, if not in its folder; "" else.
  std::string save_folder(std::size_t stage) const;
};

StagePlan::StagePlan(const TrainOptions& options) : run_dir(options.run_dir), resume(options.resume) {
  if (options.local_ranks > 0 && launched_rank())
    throw UserError("--local-ranks " + std::to_string(options.local_ranks) +
                    ": under mpirun the ranks are mpirun's; leave one of the two out");
  stages = resolve_stages(read_recipe(options.recipe.path, options.recipe.overrides));
  const Setting& whole = stages.front().recipe;
  run_dir = run_folder(run_dir, RunKeys::kind().read(whole).run_name.value);
  if (resume.empty() && resumes_by_itself(whole)) resume = "auto";
  if (is_run_folder(run_dir))
    throw UserError({run_dir}, "is a run without stages; --run-dir OTHER trains the stages elsewhere");
  require_no_sweep(run_dir);
  find_first();
}

void StagePlan::find_first() {
  const std::vector<std::string> runs = stage_runs(run_dir);
  if (runs.empty()) return;
  if (resume != "auto")
    throw UserError({run_dir}, "has a training in stages; `tutti resume " + on_one_line(run_dir) +
                                   "` continues it, --run-dir OTHER trains anew");
  first = std::min(runs.size(), stages.size()) - 1;
  if (first + 1 < stages.size() && is_over(runs[first])) ++first;
}

std::string StagePlan::save_folder(std::size_t stage) const {
  const Setting& folder = stages[stage].recipe.at("checkpoint").at("save_folder");
  return folder.is_none() ? "" : folder.text() + '/' + kStageFolder + std::to_string(stage + 1);
}

Setting StagePlan::recipe(std::size_t stage) const {
  Setting recipe = stages[stage].recipe;
  Setting& checkpoint = *recipe.find("checkpoint");
  set_key(recipe, "run_name", recipe.at("run_name").text() + '-' + kStageFolder + std::to_string(stage + 1));
  if (const std::string folder = save_folder(stage); !folder.empty())
    set_key(checkpoint, "save_folder", folder);
  if (stage == 0) return recipe;
  std::string before = save_folder(stage - 1);
  if (is_remote_path(before)) before.clear();  // the stage's own folder has the checkpoints too
  Setting& path = *checkpoint.find("resume");
  path.value = before.empty() ? fs::absolute(folder(stage - 1)).lexically_normal().string() : before;
  path.written_path = "checkpoint.load_path";
  return recipe;
}

void StagePlan::require_data(int ranks) const {
  MistakeCollector mistakes;
  for (std::size_t stage = first + 1; stage < stages.size(); ++stage) {
    const Setting& recipe = stages[stage].recipe;
    if (!can_be_opened_early(recipe)) continue;
    mistakes.collect([&] { blame_recipe(recipe, [&] { return tried(before_its_start(recipe), ranks); }); });
  }
  mistakes.throw_all();
}

// Of stages that are over.
void StagePlan::warn_of_changes() const {
  const std::string saved_in = run_dir + '/' + kRecipeFile;
  if (first == 0 || !PosixDisk().exists(saved_in)) return;
  const std::vector<Stage> saved = resolve_stages(read_recipe(saved_in));
  for (std::size_t stage = 0; stage < std::min(first, saved.size()); ++stage) {
    const auto changes = recipe_changes(with_command_names(stages[stage].recipe), saved[stage].recipe);
    if (!changes.empty())
      print_warning(title(stage) + " is over; changed keys have no effect there: " + joined(changes));
  }
}

// For `tutti resume`: all keys of all stages, which read back as the same.
void StagePlan::save() const {
  PosixDisk disk;
  Setting::Array tables;
  for (const Stage& stage : stages) {
    Setting table = with_command_names(stage.recipe);
    std::erase_if(table.table(), [](const auto& member) { return member.first == "run_name"; });
    if (!stage.name.empty())
      table.table().insert(table.table().begin(), {"name", Setting(stage.name, "", {})});
    tables.push_back(std::move(table));
  }
  Setting whole(Setting::Table{}, "", {});
  whole.table().emplace_back("run_name", stages.front().recipe.at("run_name"));
  whole.table().emplace_back("stages", Setting(std::move(tables), "stages", {}));
  disk.make_folders(run_dir);
  replace_file(disk, run_dir + '/' + kRecipeFile, write_recipe(whole));
}

struct StageEnd {
  int code = 0;
  bool stopped = false;
};

StageEnd train_stage(const StagePlan& plan, std::size_t stage, const TrainOptions& options,
                     Launcher& launcher) {
  const std::string resume = stage == 0 || plan.resume == "auto" ? plan.resume : "";
  const int code =
      launcher.train([&] { return plan.recipe(stage); }, {.run_dir = plan.folder(stage),
                                                          .resume = resume,
                                                          .ends_process = stage + 1 == plan.stages.size(),
                                                          .json = options.json,
                                                          .local_ranks = options.local_ranks});
  return {code, launcher.stopped()};
}

void announce(const StagePlan& plan, std::size_t stage) {
  print_text(plan.title(stage) + " in " + on_one_line(plan.folder(stage)) +
             (stage > 0 ? ", from the weights of stage " + std::to_string(stage) : "") + '\n');
}

int train_all(const StagePlan& plan, const TrainOptions& options, Launcher& launcher) {
  for (std::size_t stage = plan.first; stage < plan.stages.size(); ++stage) {
    if (is_first_rank() && !options.json) announce(plan, stage);
    const StageEnd end = train_stage(plan, stage, options, launcher);
    const bool is_last = stage + 1 == plan.stages.size();
    if (is_first_rank() && !options.json && !is_last && (end.code != 0 || end.stopped))
      print_text("tutti resume " + on_one_line(plan.run_dir) + " continues with " + plan.title(stage) + '\n');
    if (end.code != 0 || end.stopped) return end.code;
  }
  return 0;
}

}  // namespace

int train_stages(const TrainOptions& options) {
  Launcher launcher;
  std::optional<StagePlan> plan;
  try {
    plan.emplace(options);
    plan->require_data(std::max({1, options.local_ranks, launched_world()}));
    if (is_first_rank()) {
      plan->warn_of_changes();
      plan->save();
    }
  } catch (const UserError&) {
    if (!launched_rank()) throw;
    return launcher.train([error = std::current_exception()]() -> Setting { std::rethrow_exception(error); },
                          {});
  }
  return train_all(*plan, options, launcher);
}

std::string check_stages_text(const CheckOptions& options) {
  const auto stages = resolve_stages(read_recipe(options.recipe.path, options.recipe.overrides));
  std::string text;
  MistakeCollector mistakes;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    text += stage_title(stages, stage) + '\n';
    mistakes.collect([&] {
      const Setting& recipe = stages[stage].recipe;
      text += check_text(stage == 0 ? recipe : before_its_start(recipe), options);
    });
  }
  mistakes.throw_all();
  return text;
}

}  // namespace tutti

#include "job/earlier_run.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "io/checkpoint/saved_state.h"
#include "io/foreign/foreign_checkpoint.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {
namespace {

// Of the first readable checkpoint. Unreadable ones are reported when the run restores.
std::optional<RunState> first_state(const std::vector<std::string>& folders) {
  const PosixDisk disk;
  for (const std::string& folder : folders) {
    try {
      return state_in(disk, folder);
    } catch (const OperatingError&) {
    }
  }
  return std::nullopt;
}

std::optional<RunState> own_state(const Job& job) {
  if (job.from.autoresume.is_none()) return std::nullopt;
  auto own = published_checkpoints(PosixDisk(), job.checkpoints, job.settings.checkpoint.set.names);
  for (auto& name : own) name = job.checkpoints + "/" + name;
  return first_state({own.rbegin(), own.rend()});
}

std::optional<RunState> loaded_state(const Job& job) {
  if (job.from.load_path.is_none() || job.from.options.weights_only) return std::nullopt;
  const PosixDisk disk;
  const std::string& path = job.from.load_path.text();
  return is_foreign_checkpoint(disk, path) ? std::nullopt : first_state(checkpoints_at(disk, path));
}

// Calls visit(the setting) for each teacher or reference of a resolved recipe that is a path.
template <class Visit>
void for_each_teacher(Setting& recipe, const Visit& visit) {
  for (Setting& section : std::get<Setting::Array>(recipe.find("algorithms")->value)) {
    const std::string& kind = section.at("kind").text();
    Setting* teacher = section.find(kind == "dpo" ? "reference" : "teacher");
    if ((kind == "dpo" || kind == "distillation") && teacher->is_text()) visit(*teacher);
  }
}

std::vector<std::string> teachers_of(const std::optional<RunState>& state) {
  std::vector<std::string> teachers;
  if (!state) return teachers;
  Setting recipe = parse_recipe(state->recipe, "");
  if (recipe.find("algorithms"))
    for_each_teacher(recipe, [&](const Setting& teacher) { teachers.push_back(teacher.text()); });
  return teachers;
}

}  // namespace

void choose_seed(Job& job, uint64_t fresh) {
  Setting& seed = *job.recipe.find("seed");
  if (seed.is_none()) {
    auto earlier = own_state(job);
    if (!earlier && !job.from.options.ignored.fit("rank_zero_seed")) earlier = loaded_state(job);
    seed.value = static_cast<int64_t>(earlier ? earlier->seed : fresh);
  }
  job.seed = static_cast<uint64_t>(seed.integer());
}

void choose_teachers(Job& job) {
  for_each_teacher(job.recipe, [&job](Setting& teacher) {
    std::vector<std::string> checkpoints;
    try {
      checkpoints = checkpoints_at(PosixDisk(), teacher.text());
    } catch (const OperatingError&) {
    }
    if (checkpoints.empty()) return;
    const auto own = own_state(job);
    const std::vector<std::string> earlier = teachers_of(own ? own : loaded_state(job));
    const auto kept = std::ranges::find_first_of(checkpoints, earlier);
    teacher.value = kept == checkpoints.end() ? checkpoints.front() : *kept;
  });
}

}  // namespace tutti

#include "actors/resume.h"

#include <algorithm>

#include "io/recipe.h"
#include "runtime/error.h"

namespace tutti {

namespace {

// What a recipe may not change in mid-run: the order of the samples, and the function that is trained.
std::vector<std::string> fixed_lines(const Setting& recipe) {
  std::vector<std::string> lines;
  const Setting* train = recipe.find("data") ? recipe.find("data")->find("train") : nullptr;
  for (const char* key : {"shuffle", "drop_last"})
    if (train && train->has(key)) lines.push_back(train->at(key).path + " = " + train->at(key).toml());
  if (const Setting* model = recipe.find("model"))
    for (const auto& [key, value] : model->table())
      if (key != "weights" && key != "dropout" && !value.is_none())
        lines.push_back(value.path + " = " + value.toml());
  return lines;
}

void require_same_recipe(const std::string& folder, const std::string& saved, const Setting& recipe) {
  const auto theirs = fixed_lines(parse_recipe(saved, folder)), mine = fixed_lines(recipe);
  for (const auto& line : theirs)
    if (std::find(mine.begin(), mine.end(), line) == mine.end())
      throw UserError(folder + ": it was trained with " + line + ", which is not so in the recipe");
}

}  // namespace

RunState resume(Trainee& trainee, const Checkpoint& checkpoint, const ResumeTerms& terms) {
  const std::string& folder = checkpoint.folder;
  RunState state = RunState::from_json(checkpoint.state);
  if (state.seed != terms.seed)
    throw UserError(folder + ": it was trained with seed " + std::to_string(state.seed) +
                    ", the recipe says " + std::to_string(terms.seed));
  if (state.global_batch != terms.global_batch)
    throw UserError(folder + ": it was trained with batches of " + std::to_string(state.global_batch) +
                    " samples, the recipe says " + std::to_string(terms.global_batch));
  if (state.data_digest != terms.data_digest)
    throw UserError(folder + ": it was trained on other data than [data.train] names");
  restore_tensors(trainee, checkpoint.tensors, folder);
  require_same_recipe(folder, state.recipe, terms.recipe);
  return state;
}

}  // namespace tutti

#include "actors/lone_job.h"

#include <cstdio>

#include "actors/checkpoint_terms.h"
#include "actors/learning_rate.h"
#include "io/checkpoint.h"
#include "tensors/torch_error.h"

namespace tutti {
namespace {

// Gives the checkpoint's folder, "" where there is none.
std::string load_model(Trainee& trainee, const Job& job, const std::string& named) try {
  const bool newest = named.empty() || named == "auto";
  const Checkpoint checkpoint = newest ? newest_good_checkpoint(PosixDisk(), job.checkpoints,
                                                                tell_passed_over, checkpoint_set(job.recipe))
                                       : find_checkpoint(PosixDisk(), named, tell_passed_over);
  if (!checkpoint.folder.empty()) restore_model(trainee, checkpoint.tensors, checkpoint.folder);
  return checkpoint.folder;
} catch (const std::exception& error) {
  if (named.empty()) throw;
  Setting(named, "--checkpoint", {"command line"}).fail(one_line(error));
}

}  // namespace

Job lone_job(const Setting& recipe, int ranks) {
  begin_process(recipe);
  JobOptions options;
  options.world = ranks;
  options.makes_folders = false;
  return make_job(recipe, options);
}

void tell_passed_over(const std::string& what) { std::fprintf(stderr, "passed over: %s\n", what.c_str()); }

LoneModel::LoneModel(const Job& job, const std::string& named) {
  state.composer = composers_way(job.recipe);
  build(state, job.recipe, job.spec(), job.seed, job.make_model);
  const std::string folder = load_model(state, job, named);
  weights = "weights: " + (folder.empty() ? "the recipe's initial ones" : folder);
}

std::string told_of(const Setting& recipe, const std::function<std::string()>& command) try {
  return command();
} catch (const UserError&) {
  throw;
} catch (const std::exception& error) {
  throw UserError(recipe.position.file + ": " + one_line(error));
}

}  // namespace tutti

#include "actors/check.h"

#include <ATen/core/Tensor.h>

#include <sstream>

#include "actors/evaluation.h"
#include "actors/job.h"
#include "actors/learning_rate.h"
#include "actors/resume.h"
#include "tensors/torch_error.h"
#include "training/engine.h"
#include "training/state.h"

namespace tutti {
namespace {

Job lone_job(const Setting& recipe, int ranks) {
  begin_process(recipe);
  JobOptions options;
  options.world = ranks;
  options.makes_folders = false;
  return make_job(recipe, options);
}

void pass_over(const std::string& what) { std::fprintf(stderr, "passed over: %s\n", what.c_str()); }

Checkpoint newest_of_run(const Job& job) {
  return newest_good_checkpoint(PosixDisk(), job.checkpoints, pass_over, checkpoint_set(job.recipe));
}

Checkpoint checkpoint_of(const Job& job, const std::string& named) {
  if (!named.empty() && named != "auto") return find_checkpoint(PosixDisk(), named, pass_over);
  return newest_of_run(job);
}

void check_fit(const Job& job, Trainee& trainee, const Checkpoint& checkpoint, const LoadTerms& load) {
  const auto tell = [](const std::string& what) { std::fprintf(stderr, "warning: %s\n", what.c_str()); };
  resume(trainee, checkpoint, {job.seed, job.global_batch, job.data_digest(), job.recipe}, load, tell);
}

bool check_own(const Job& job, Trainee& trainee) try {
  if (job.from.autoresume.is_none()) return false;
  const Checkpoint newest = newest_of_run(job);
  if (!newest.folder.empty()) check_fit(job, trainee, newest, {});
  return !newest.folder.empty();
} catch (const std::exception& error) {
  job.from.autoresume.fail(one_line(error));
}

void check_load_path(const Job& job, Trainee& trainee) try {
  check_fit(job, trainee, find_checkpoint(PosixDisk(), job.from.load_path.text(), pass_over), job.from.terms);
} catch (const std::exception& error) {
  job.from.load_path.fail(one_line(error));
}

void check_resume(const Job& job, Trainee& trainee) {
  if (!check_own(job, trainee) && !job.from.load_path.is_none()) check_load_path(job, trainee);
}

// What all ranks share is looked at once.
void scan(const Job& job, int rank) {
  if (rank == 0 || !job.own_train.empty()) job.train_of(rank)->scan();
  if (job.eval && (rank == 0 || !job.own_eval.empty())) job.eval_of(rank)->scan();
}

void check_times(const Job& job, const Trainee& trainee) {
  const Time max_duration = planned_duration(job.recipe);
  const Interval eval_every(Time::parse(job.recipe.at("train").at("eval_interval")), max_duration);
  Interval(Time::parse(job.recipe.at("checkpoint").at("interval")), max_duration);
  LearningRate(job.recipe, trainee, {max_duration, job.train_sampler(0).batches()},
               job.eval && eval_every.fires());
}

}  // namespace

std::string check_text(const Setting& recipe, int ranks, bool scan_data) try {
  const Job job = lone_job(recipe, ranks);
  if (scan_data) {
    for (int rank = 0; rank < ranks; ++rank) scan(job, rank);
  }
  Trainee trainee;
  build(trainee, job.recipe, job.spec(), job.seed, job.make_model);
  check_times(job, trainee);
  check_resume(job, trainee);
  int64_t numbers = 0;
  for (const auto& view : trainee.views) numbers += view.tensor.numel();
  std::ostringstream out;
  out << job.recipe_text << "\n# " << batch_identity(job) << "\n# " << job.train_sampler(0).batches()
      << " steps an epoch over " << job.train_samples() << " samples\n# " << trainee.model->kind() << ": "
      << trainee.views.size() << " parameters, " << numbers << " numbers\n";
  return out.str();
} catch (const UserError&) {
  throw;
} catch (const std::exception& error) {
  throw UserError(recipe.position.file + ": " + one_line(error));
}

std::string eval_text(const Setting& recipe, const std::string& named) try {
  const Job job = lone_job(recipe, 1);
  if (!job.eval) throw UserError(recipe.position.file + ": there is no [data.eval] to evaluate on");
  State state;
  Logger logger;
  Engine engine(state, logger, {});
  build(state, job.recipe, job.spec(), job.seed, job.make_model);
  const Checkpoint checkpoint = checkpoint_of(job, named);
  if (!checkpoint.folder.empty()) restore_model(state, checkpoint.tensors, checkpoint.folder);
  const Sampler sampler = job.eval_sampler(0);
  const auto fetch = [&](int64_t index) { return job.eval->get(sampler.indices(*job.eval, 0, index)); };
  std::ostringstream out;
  out << "weights: " << (checkpoint.folder.empty() ? "the recipe's initial ones" : checkpoint.folder) << '\n';
  const auto values = evaluate(
      state, engine, sampler.batches(), fetch, [](const at::Tensor&) {}, [] { return 0.0; });
  for (const auto& [name, value] : values.value()) out << name << ' ' << value << '\n';
  return out.str();
} catch (const UserError&) {
  throw;
} catch (const std::exception& error) {
  throw UserError(recipe.position.file + ": " + one_line(error));
}

}  // namespace tutti

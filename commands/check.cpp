#include "commands/check.h"

#include <ATen/core/Tensor.h>

#include <sstream>

#include "commands/loaded_model.h"
#include "job/job.h"
#include "job/resume.h"
#include "runtime/printable.h"
#include "tensors/torch_error.h"
#include "training/callbacks/factory.h"
#include "training/engine/engine.h"
#include "training/evaluation/evaluation.h"
#include "training/schedules/learning_rate.h"
#include "training/state.h"

namespace tutti {
namespace {

bool check_own(const Job& job, Trainee& trainee) try {
  if (job.from.autoresume.is_none()) return false;
  const Checkpoint newest =
      newest_good_checkpoint(PosixDisk(), job.checkpoints, warn_ignored, job.settings.checkpoint.set);
  if (!newest.folder.empty()) resume(trainee, newest, job, {}, print_warning);
  return !newest.folder.empty();
} catch (const std::exception& error) {
  job.from.autoresume.fail(one_line(error));
}

void check_load_path(const Job& job, Trainee& trainee) try {
  resume(trainee, find_checkpoint(PosixDisk(), job.from.load_path.text(), warn_ignored), job,
         job.from.options, print_warning);
} catch (const std::exception& error) {
  job.from.load_path.fail(one_line(error));
}

void check_times(const Job& job, const Trainee& trainee) {
  const TrainSettings& train = job.settings.train;
  const Horizon horizon =
      train.horizon(train.planned_duration(), job.train_sampler(0).batches(), trainee.optimizer->base_lr());
  LearningRate(job.recipe, horizon, evaluation_metrics(job.evaluators, *trainee.model));
}

LoggedMetrics evaluation_of(const Job& job, const Evaluator& evaluator, State& state, Engine& engine) {
  const Sampler sampler = job.eval_sampler(evaluator, 0);
  const Dataset& data = *evaluator.data;
  const auto fetch = [&](int64_t index) {
    return EvalPart{data.get(sampler.indices(data, 0, index), sampler.epoch(0)),
                    sampler.global_samples(index)};
  };
  return evaluate(state, engine, evaluator, single_rank_hooks(engine, fetch)).value();
}

std::string checked(const Job& job, bool scan_data) {
  if (scan_data) job.scan_data();
  LoadedModel model(job);
  State& trainee = model.state;
  check_times(job, trainee);
  for (const auto& evaluator : job.evaluators) try_metrics(trainee, evaluator, *evaluator.data);
  trainee.measured = measured_metrics(job.evaluators, *trainee.model);
  model.engine.require();
  PosixDisk disk;
  RingRecorder recorder;
  for (const auto& callback : make_callbacks(job.recipe, {disk, recorder})) callback->require(trainee);
  if (!check_own(job, trainee) && !job.from.load_path.is_none()) check_load_path(job, trainee);
  int64_t numbers = 0;
  for (const auto& view : trainee.views) numbers += view.tensor.numel();
  std::ostringstream out;
  out << job.recipe_text << "\n# " << batch_identity(job) << "\n# " << job.train_sampler(0).batches()
      << " steps an epoch over " << job.train_samples() << " samples\n# " << trainee.model->kind() << ": "
      << trainee.views.size() << " parameters, " << numbers << " numbers\n";
  return out.str();
}

std::string evaluated(const Job& job, const std::string& checkpoint) {
  LoadedModel model(job);
  std::ostringstream out;
  out << model.load(checkpoint) << '\n';
  model.engine.run_event(Event::kEvalStandaloneStart);
  for (const auto& evaluator : job.evaluators)
    for (const auto& [name, value] : evaluation_of(job, evaluator, model.state, model.engine))
      out << name << ' ' << value << '\n';
  model.engine.run_event(Event::kEvalStandaloneEnd);
  return out.str();
}

}  // namespace

std::string check_text(const Setting& recipe, int ranks, bool scan_data) {
  return blame_recipe(recipe, [&] { return checked(single_process_job(recipe, ranks), scan_data); });
}

std::string eval_text(const Setting& recipe, const std::string& checkpoint) {
  return blame_recipe(recipe, [&] {
    const Job job = single_process_job(recipe, 1);
    if (job.evaluators.empty())
      throw UserError(recipe.position.file + ": there is no [data.eval] to evaluate on");
    return evaluated(job, checkpoint);
  });
}

}  // namespace tutti

#include "commands/check.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <sstream>
#include <string>

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

// The checkpoint that a run would start from, by which key, and how; without folder: none.
struct StartingPoint {
  Checkpoint checkpoint;
  Setting key;
  LoadOptions options;
};

void blame(const Setting& key, const std::function<void()>& work) try {
  work();
} catch (const std::exception& error) {
  key.fail(one_line(error));
}

StartingPoint start_of(const Job& job) {
  const PosixDisk disk;
  StartingPoint own{.checkpoint = {}, .key = job.from.autoresume, .options = {}};
  if (!own.key.is_none())
    blame(own.key, [&] {
      own.checkpoint =
          newest_good_checkpoint(disk, job.checkpoints, {warn_ignored}, job.settings.checkpoint.set);
    });
  if (!own.checkpoint.folder.empty() || job.from.load_path.is_none()) return own;
  StartingPoint other{.checkpoint = {}, .key = job.from.load_path, .options = job.from.options};
  blame(other.key,
        [&] { other.checkpoint = find_checkpoint(disk, job.from.load_path.text(), {warn_ignored}); });
  return other;
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
  for (const std::string& advice : job.data_advice()) print_warning(advice);
  if (scan_data) job.scan_data();
  const StartingPoint start = start_of(job);
  const bool starts = !start.checkpoint.folder.empty();
  LoadedModel model(job, start.checkpoint, start.options, start.key);
  State& trainee = model.state;
  check_times(job, trainee);
  for (const auto& evaluator : job.evaluators) try_metrics(trainee, evaluator, *evaluator.data);
  trainee.measured = measured_metrics(job.evaluators, *trainee.model);
  model.engine.require();
  PosixDisk disk;
  RingRecorder recorder;
  for (const auto& callback : make_callbacks(job.recipe, {disk, recorder})) callback->require(trainee);
  if (starts)
    blame(start.key, [&] { resume(trainee, disk, start.checkpoint, job, start.options, print_warning); });
  int64_t numbers = 0;
  for (const auto& view : trainee.views) numbers += view.tensor.numel();
  std::ostringstream out;
  out << job.recipe_text << "\n# " << batch_identity(job) << "\n# " << job.train_sampler(0).batches()
      << " steps an epoch over " << job.train_samples() << " samples\n# " << trainee.model->kind() << ": "
      << trainee.views.size() << " parameters, " << numbers << " numbers\n";
  return out.str();
}

std::string evaluated(const Job& job, const std::string& checkpoint) {
  LoadedModel model(job, checkpoint);
  std::ostringstream out;
  out << model.load() << '\n';
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

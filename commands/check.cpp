#include "commands/check.h"

#include <ATen/core/Tensor.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include "commands/loaded_model.h"
#include "commands/local_train.h"
#include "commands/prediction_job.h"
#include "data/balance/class_counts.h"
#include "data/readers/class_names.h"
#include "data/split/open_split.h"
#include "io/foreign/foreign_checkpoint.h"
#include "io/formats/run_metrics.h"
#include "io/run_paths.h"
#include "job/evaluation_data.h"
#include "job/job.h"
#include "job/make_job.h"
#include "job/recipe_catalogs.h"
#include "job/resume.h"
#include "recipe/placeholders.h"
#include "recipe/set_key.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"
#include "tensors/memory/meter.h"
#include "tensors/memory/torch_error.h"
#include "training/callbacks/factory.h"
#include "training/engine/callback.h"
#include "training/engine/engine.h"
#include "training/evaluation/catalog.h"
#include "training/evaluation/evaluation.h"
#include "training/loggers/run_result.h"
#include "training/schedules/learning_rate.h"
#include "training/state.h"

namespace tutti {

namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() : path_((fs::temp_directory_path() / "tutti-check-XXXXXX").string()) {
    if (!mkdtemp(path_.data())) throw OperatingError(path_ + ": cannot be created");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class StopAfter final : public Callback {
 public:
  StopAfter(int64_t steps, double seconds) : steps_(steps), seconds_(seconds) {}
  std::string name() const override { return "StopAfter"; }
  void batch_end(State& state, Logger&) override {
    if (state.timestamp.batch >= steps_ || seconds(SystemClock().now() - begin_) > seconds_)
      state.stop_training();
  }

 private:
  const int64_t steps_;
  const double seconds_;
  const TimePoint begin_ = SystemClock().now();
};

// Starts from nothing, writes nothing of the user's, and evaluates on one batch.
void shorten(Setting& recipe, bool copies_checkpoints) {
  set_key(*recipe.find("journal"), "level", std::string("off"));
  Setting& checkpoint = *recipe.find("checkpoint");
  set_key(checkpoint, "interval", std::string("0ba"));
  if (!copies_checkpoints)
    set_key(checkpoint, "save_ignore_keys", Setting::Array{Setting(std::string("*"), "", {})});
  for (const char* absent : {"save_folder", "resume", "best"}) set_key(checkpoint, absent, std::monostate());
  set_key(checkpoint, "autoresume", false);
  for (const char* list : {"loggers", "callbacks"}) set_key(recipe, list, Setting::Array());
  if (Setting& eval = *recipe.find("data")->find("eval"); eval.is_table())
    set_key(eval, "subset_num_batches", int64_t{1});
  for (Setting& evaluator : std::get<Setting::Array>(recipe.find("evaluators")->value))
    set_key(evaluator, "subset_num_batches", int64_t{1});
}

}  // namespace

TriedStep try_steps(Setting recipe, const TryOptions& tried) {
  const TemporaryFolder folder;
  shorten(recipe, tried.copies_checkpoints);
  LocalRunOptions options;
  options.ranks = tried.ranks;
  options.run_dir = folder.path();
  options.live = options.quiet = true;
  options.prepare = [&tried](Job& job) {
    job.listeners = [&tried](int) {
      Engine::Options listeners;
      listeners.callbacks.push_back(std::make_shared<StopAfter>(tried.steps, tried.seconds));
      return listeners;
    };
  };
  if (train_in_one_process(recipe, options).stopped)
    throw OperatingError("stopped while trying steps", EndKind::kInterrupted);
  const RunMetrics metrics = RunMetrics::read(folder.path() + '/' + kMetricsFile);
  return {.steps = metrics.step,
          .loss = metrics.figure("loss"),
          .ms = metrics.figure("step_ms") / tried.ranks,
          .wait_ms = metrics.figure("data_wait_ms") / tried.ranks,
          .memory_mb = metrics.figure("memory_peak_mb"),
          .grad_accum = static_cast<int64_t>(metrics.figure("grad_accum"))};
}

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
  key.fail(run_error(error));
}

Checkpoint checkpoint_to_load(const Disk& disk, const std::string& path) {
  return is_foreign_checkpoint(disk, path) ? foreign_checkpoint(disk, path)
                                           : find_checkpoint(disk, path, {warn_ignored});
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
  if (is_remote_path(job.from.load_path.as_written())) {
    print_warning(job.from.load_path.path_as_written() + " is of a remote store, and is not tried");
    return own;
  }
  StartingPoint other{.checkpoint = {}, .key = job.from.load_path, .options = job.from.options};
  blame(other.key, [&] { other.checkpoint = checkpoint_to_load(disk, job.from.load_path.text()); });
  return other;
}

void check_times(const Job& job, const Trainee& trainee) {
  const TrainSettings& train = job.settings.train;
  const Horizon horizon =
      train.horizon(train.planned_duration(), job.train_sampler(0).batches(), trainee.optimizer->base_lr());
  const auto measured = evaluation_metrics(job.evaluators, *trainee.model);
  LearningRate(job.recipe, horizon, measured);
  if (const auto& best = job.settings.checkpoint.best) logged_name(best->metric, measured);
}

// All batches of an evaluator, on a single rank.
class WholeEvaluation final : public EvaluationRun {
 public:
  WholeEvaluation(const Job& job, const Evaluator& evaluator, const Device& device)
      : data_(*evaluator.data), sampler_(job.eval_sampler(evaluator, 0)), device_(device) {}
  std::optional<Batch> fetch(int64_t index) override {
    return device_.take(data_.get(sampler_.indices(data_, 0, index), sampler_.epoch(0)));
  }

 private:
  const Dataset& data_;
  const Sampler sampler_;
  const Device device_;
};

LoggedMetrics evaluation_of(const Job& job, const Evaluator& evaluator, State& state, Engine& engine) {
  WholeEvaluation batches(job, evaluator, state.device);
  return evaluate(state, engine, evaluator, batches).value();
}

// The steps of the run; 0 = unknown.
int64_t planned_steps(const Job& job) {
  const Time duration = job.settings.train.planned_duration();
  if (duration.unit() == TimeUnit::kBatch) return duration.count();
  return duration.unit() == TimeUnit::kEpoch ? duration.count() * job.train_sampler(0).batches() : 0;
}

std::string time_text(double s) {
  return s < 60 ? formatted("%.1f s", s)
                : duration_text(s) + (s < 3600 ? " (minutes:seconds)" : " (hours:minutes:seconds)");
}

std::string step_text(const TriedStep& step, int ranks) {
  if (step.steps == 0) return "none: the run ends before its first";
  std::string text = formatted("%.4g ms, %.4g MB at its peak, of", step.ms, step.memory_mb);
  text += ranks > 1 ? " each rank, without communication" : " the one rank";
  if (step.grad_accum > 1) text += ", in " + std::to_string(step.grad_accum) + " microbatches";
  return text + " (the last of " + std::to_string(step.steps) + " that were tried)";
}

std::string row(std::string label, const std::string& value) {
  label.resize(9, ' ');
  return "  " + label + value + '\n';
}

// Uses the trainee of rank 0, whose share is the largest.
std::string parameters_text(const Trainee& trainee) {
  int64_t all = 0, share = 0, frozen = 0;
  for (const auto& view : trainee.views) {
    all += c10::multiply_integers(view.shape);
    share += view.tensor.numel();
    if (!view.trained) frozen += c10::multiply_integers(view.shape);
  }
  std::string text = grouped(all) + " parameters";
  if (frozen > 0) text += ", " + grouped(all - frozen) + " trained and " + grouped(frozen) + " frozen";
  return share < all ? text + ", " + grouped(share) + " in the largest share of a rank" : text;
}

std::string memory_text(const Job& job) {
  int64_t bytes = job.train->memory_bytes();
  for (const auto& evaluator : job.evaluators) bytes += evaluator.data->memory_bytes();
  if (bytes == 0) return "";
  return row("data",
             formatted("%.4g MB in the memory of each process", static_cast<double>(bytes) / kBytesPerMb));
}

std::string split_text(const Job& job) {
  const Setting& eval = job.recipe.at("data").at("eval");
  if (!is_split(eval)) return "";
  const std::string label = EvaluatorKeys::kind().read(eval).label;
  const auto held_out = std::ranges::find(job.evaluators, label, &Evaluator::label);
  const int64_t samples = held_out->data->size(), all = job.train_samples() + samples;
  return row("split", grouped(job.train_samples()) + " of " + grouped(all) + " samples to train on, " +
                          grouped(samples) + " held out for " + label);
}

// How many training samples each class has, or the least and the most; "" if that is not known.
std::string classes_text(const Job& job) {
  constexpr std::size_t kListed = 10;
  const auto known = trained_classes(*job.train, job.recipe.at("data").at("train"), ignore_index(job.recipe),
                                     /*reads=*/false);
  const std::vector<int64_t> counts = class_counts(known.classes, job.spec().classes);
  if (counts.size() < 2 || !job.per_rank_train.empty()) return "";
  const std::vector<std::string> names = class_names(job.recipe.at("data").at("train"), job.fitted);
  const auto one_text = [&](std::size_t number) {
    return (number < names.size() ? shown(names[number]) : std::to_string(number)) + ": " +
           grouped(counts[number]);
  };
  std::string text;
  if (counts.size() <= kListed) {
    for (std::size_t i = 0; i < counts.size(); ++i) text += (i == 0 ? "" : ", ") + one_text(i);
  } else {
    const auto [least, most] = std::ranges::minmax_element(counts);
    text = std::to_string(counts.size()) + ", from " +
           one_text(static_cast<std::size_t>(least - counts.begin())) + " to " +
           one_text(static_cast<std::size_t>(most - counts.begin()));
  }
  return row("classes", text + " training samples");
}

// A summary of the checks.
std::string summary(const Job& job, const State& trainee, const CheckOptions& options) {
  const int64_t steps = planned_steps(job);
  std::string text = row("model", job.model_name() + ": " + parameters_text(trainee));
  text += row("batches", batch_identity(job)) +
          row("epoch", std::to_string(job.train_sampler(0).batches()) + " steps over " +
                           std::to_string(job.train_samples()) + " samples");
  text += split_text(job) + classes_text(job) + memory_text(job) +
          row("run", job.settings.train.max_duration->text() +
                         (steps > 0 ? ", " + std::to_string(steps) + " steps" : ""));
  if (options.steps == 0) return text;
  const TriedStep step = try_steps(job.recipe, {.ranks = options.ranks, .steps = options.steps});
  if (step.steps > 0 && !std::isfinite(step.loss)) print_warning("the loss of the tried steps is not finite");
  text += row("step", step_text(step, options.ranks));
  if (steps > 0)
    text += row("all", "about " + time_text(static_cast<double>(steps) * step.ms / 1e3) +
                           ", without evaluations and checkpoints");
  return text;
}

std::string checked(const Job& job, const CheckOptions& options) {
  for (const std::string& advice : job_advice(job)) print_warning(advice);
  if (options.scan_data) job.scan_data();
  for (const std::string& replaced : job.replaced()) print_warning(replaced);
  const StartingPoint start = start_of(job);
  const bool starts = !start.checkpoint.folder.empty();
  LoadedModel model(job, start.checkpoint, start.options, start.key);
  State& trainee = model.state;
  check_times(job, trainee);
  for (const auto& evaluator : job.evaluators) {
    require_takes_samples(trainee, job, evaluator);
    try_metrics(trainee, evaluator, *evaluator.data);
  }
  trainee.measured = measured_metrics(job.evaluators, *trainee.model);
  model.engine.require();
  PosixDisk disk;
  for (const auto& callback : make_callbacks(job.recipe, {disk})) callback->require(trainee);
  if (starts)
    blame(start.key, [&] { resume(trainee, disk, start.checkpoint, job, start.options, print_warning); });
  const std::string text = summary(job, trainee, options);
  return (options.all ? job.recipe_text + "\n" : "") + "ok: " + job.recipe.position.file + "\n" + text;
}

// Reads the first batch on this thread.
double load_ms(const Job& job) {
  const Sampler sampler = job.train_sampler(0);
  const TimePoint begin = SystemClock().now();
  job.train->get(sampler.indices(*job.train, 0, 0), sampler.epoch(0));
  return milliseconds(SystemClock().now() - begin);
}

RecipeCost measured_cost(const Job& job) {
  constexpr int kSteps = 3;
  constexpr double kSeconds = 2;
  const double load = job.per_rank_train.empty() ? load_ms(job) : 0;
  const TriedStep step =
      try_steps(job.recipe, {.steps = kSteps, .seconds = kSeconds, .copies_checkpoints = false});
  const int64_t epoch = job.train_sampler(0).batches(), steps = planned_steps(job);
  const auto time_of = [&](int64_t count) { return static_cast<double>(count) * step.ms / 1e3; };
  const std::string run = job.settings.train.max_duration->text();
  if (steps > 0 && steps < epoch)
    return {time_of(steps), step.ms - step.wait_ms, load,
            "The training of " + run + " takes about " + time_text(time_of(steps)) + " here."};
  std::string text =
      "An epoch of " + std::to_string(epoch) + " steps takes about " + time_text(time_of(epoch)) + " here";
  if (steps > 0) text += ", the training of " + run + ' ' + time_text(time_of(steps));
  return {time_of(epoch), step.ms - step.wait_ms, load, text + "."};
}

std::string evaluated(const Job& job, const std::string& checkpoint) {
  LoadedModel model(job, checkpoint);
  for (const auto& evaluator : job.evaluators) require_takes_samples(model.state, job, evaluator);
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

std::string check_text(const Setting& recipe, const CheckOptions& options) {
  return blame_recipe(recipe, [&] { return checked(single_process_job(recipe, options.ranks), options); });
}

RecipeCost cost_of(const Setting& recipe) {
  RecipeCost cost;
  blame_recipe(recipe, [&] {
    cost = measured_cost(single_process_job(recipe, 1));
    return cost.text;
  });
  return cost;
}

std::string eval_text(const Setting& recipe, const std::string& checkpoint) {
  return blame_recipe(recipe, [&] {
    const Setting resolved = resolve_recipe(recipe);
    const auto saved = saved_state(resolved, checkpoint);
    const Job job = single_process_job(resolved, 1, saved ? saved->fitted : "");
    if (job.evaluators.empty())
      throw UserError(recipe.position.file + ": there is no [data.eval] to evaluate on");
    warn_of_changed_split(job, saved);
    return evaluated(job, checkpoint);
  });
}

}  // namespace tutti

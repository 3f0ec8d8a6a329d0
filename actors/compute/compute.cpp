#include "actors/compute/compute.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "actors/compute/step_report.h"
#include "actors/messages/heartbeat.h"
#include "data/sampler.h"
#include "job/resume.h"
#include "runtime/error.h"
#include "runtime/plain_path.h"
#include "tensors/autocast.h"
#include "tensors/torch_error.h"
#include "training/callbacks/factory.h"
#include "training/evaluation/evaluation.h"
#include "training/time/recipe_times.h"

namespace tutti {
namespace {

// Whether completing it changes nothing that a checkpoint holds: algorithms do.
bool is_whole(const StepRest& rest, bool algorithms) {
  const auto at = [&](Event event) { return rest.event == name(event); };
  if (!rest.at.empty() && algorithms) return false;
  return rest.event.empty() || at(Event::kAfterDataloader) || (at(Event::kFitEnd) && rest.left.empty());
}

StepLog::Readers readers_of(const std::vector<LogActor>& logs) {
  return {!logs.empty(), !std::ranges::all_of(logs, &LogActor::numbers_only)};
}

}  // namespace

Compute::Compute(Options options, const RankActors& cast, Disk& disk, Log& log, Recorder& recorder)
    : options_(std::move(options)),
      cast_(cast),
      disk_(disk),
      log_(log),
      recorder_(recorder),
      batch_digest_("compute/batch", recorder, TensorsDigest::kWhole),
      weights_digest_("compute/weights", recorder, TensorsDigest::kWhole),
      logger_(readers_of(cast.logs), state_.timestamp),
      trainer_log_(logger_, state_),
      queues_(cast, log, recorder),
      evaluations_(state_, options_.evaluators, cast_, recorder_,
                   {[this](Context& context, Event event) { run_event(context, event); },
                    [this](Context& context, Event begin, Event end) { undo(context, begin, end); }}) {
  state_.run_name = options_.recipe.at("run_name").text();
  state_.run_dir = options_.run_dir;
  state_.seed = options_.seed;
  state_.rank = options_.rank;
  state_.world = options_.world;
  state_.memory_slot = options_.memory_slot;
  state_.dataloader_len = options_.batches_per_epoch;
  state_.global_batch = options_.global_batch;
  state_.train_samples = options_.train_samples;
  state_.dataset = options_.train.get();
  for (const auto& evaluator : options_.evaluators) state_.eval_samples += evaluator.samples(options_.world);
}

Compute::~Compute() = default;

void Compute::receive(Context& context, Envelope& envelope) try {
  try {
    handle(context, envelope);
  } catch (const TooLarge& error) {
    give_up(context, error.what());
  }
} catch (const c10::Error& error) {
  throw OperatingError(one_line(error));
}

void Compute::handle(Context& context, Envelope& envelope) {
  Message& message = envelope.message;
  if (auto* ready = message.get_if<BatchReady>()) {
    if (!done_) step(context, *ready);
  } else if (auto* order = message.get_if<Prepare>()) {
    record(context, kPrepares);
    context.send(cast_.supervisor, prepare(*order));
  } else if (auto* start = message.get_if<Start>()) {
    begin(context, *start);
  } else if (message.get_if<StopRequested>()) {
    stop_requested_ = true;
  } else if (message.get_if<Stop>()) {
    context.stop();
  } else {
    TUTTI_ASSERT(false, message.name());
  }
}

Prepared Compute::prepare(const Prepare& start) {
  try {
    const Setting& recipe = options_.recipe;
    state_.max_duration = planned_duration(recipe);
    iteration_length_ = iteration_length(recipe);
    tasks_.after = state_.max_duration.text();
    state_.composer = composers_way(recipe);
    for (auto& callback : make_callbacks(recipe, disk_))
      options_.listeners.callbacks.push_back(std::move(callback));
    options_.listeners.log_traces |= recipe.at("train").at("log_traces").boolean();
    if (!options_.listeners.warn)
      options_.listeners.warn = [this](const std::string& what) { log_.warning(what); };
    engine_ = std::make_unique<Engine>(state_, logger_, options_.listeners);
    trainer_log_.start(recipe);
    train_step_.emplace(state_, *engine_,
                        TrainStep::Options{largest_part(options_.global_batch, options_.world), recipe,
                                           options_.memory_slot, options_.memory_budget},
                        cast_, log_, recorder_);
    build(state_, recipe, options_.spec, options_.seed, options_.make_model,
          [this] { engine_->run_event(Event::kInit); });
    plan_times();
    for (const auto& evaluator : options_.evaluators)
      try_metrics(state_, evaluator, *evaluator.data_of(options_.rank));
    state_.measured = measured_metrics(options_.evaluators, *state_.model);
    engine_->run_event(Event::kBeforeLoad);
    add_listeners_tensors(state_, *engine_);
    if (!start.checkpoint.empty()) restore(start);
    engine_->run_event(Event::kAfterLoad);
  } catch (const std::exception& error) {
    return {one_line(error), {}, 0};
  }
  const Timestamp& time = state_.timestamp;
  const bool epoch_over = time.batch_in_epoch == options_.batches_per_epoch;
  return {"", epoch_over ? DataPosition{time.epoch + 1, 0} : DataPosition{time.epoch, time.batch_in_epoch},
          time.batch};
}

void Compute::plan_times() {
  const Setting& recipe = options_.recipe;
  const Time& whole = planned_duration_ = state_.max_duration;
  evaluations_.plan(recipe, whole);
  checkpoint_every_.emplace(recipe_interval(recipe.at("checkpoint").at("interval"), recipe), whole,
                            options_.batches_per_epoch);
  LearningRate rate(recipe, state_.optimizer->base_lr(), {whole, options_.batches_per_epoch},
                    evaluation_metrics(options_.evaluators, recipe, *state_.model));
  if (state_.timestamp.batch > 0) rate.restore(rate_.state(), rate_.lagging());
  rate_ = std::move(rate);
  state_.schedule = rate_.schedule();
}

// An algorithm or a callback may have changed it.
void Compute::follow_max_duration() {
  const Time& whole = state_.max_duration;
  if (whole.unit() != planned_duration_.unit() || whole != planned_duration_) plan_times();
}

void Compute::restore(const Prepare& start) try {
  const Checkpoint checkpoint = read_checkpoint(disk_, start.checkpoint);
  const auto tell = [this](const std::string& what) {
    if (options_.rank == 0) log_.warning(what);
  };
  const RunState saved = resume(state_, checkpoint,
                                {options_.seed, options_.global_batch, options_.data_digest, options_.recipe},
                                start.own ? LoadTerms() : options_.from.terms, tell);
  if (start.own || !options_.from.terms.weights_only) take(saved, start.checkpoint);
  if (saved.step > 0) resumed_from_ = start.checkpoint;
} catch (const std::exception& error) {
  (start.own ? options_.from.autoresume : options_.from.load_path).fail(one_line(error));
}

void Compute::take(const RunState& saved, const std::string& folder) {
  if (saved.batch_in_epoch > options_.batches_per_epoch)
    throw UserError("it was saved after batch " + std::to_string(saved.batch_in_epoch) +
                    " of an epoch, which has " + std::to_string(options_.batches_per_epoch) +
                    " of this data; load_ignore_keys = [\"timestamp\"] begins anew");
  restore_time(state_, saved);
  const Timestamp& time = state_.timestamp;
  earlier_s_ = saved.seconds;
  const bool whole = is_whole(saved.rest, !engine_->algorithms().empty());
  if (saved.step > 0 && whole && lies_in(folder, options_.checkpoints)) saved_at_ = saved.step;
  rest_ = saved.rest;
  if (saved.tasks.after == tasks_.after) {
    const bool own = lies_in(folder, options_.checkpoints);
    if (own) tasks_ = saved.tasks;
    const bool over = !saved.max_duration.empty() && reached(time, Time::parse(saved.max_duration));
    if (own || (saved.tasks.done == 0 && !over)) changed_duration_ = saved.max_duration;
  }
  if (!tasks_.until.empty()) state_.max_duration = Time::parse(tasks_.until);
  train_step_->accumulation().restore(saved.accumulation, time);
  train_step_->restore_grad_scaler(saved.grad_scaler);
  restore_listeners(*engine_, saved);
  state_.metric_values = saved.metrics;
  rate_.restore(saved.plateau, saved.lagging_rate);
  follow_max_duration();
}

void Compute::begin(Context& context, const Start&) {
  record(context, "begins");
  state_.still_at_work = [this, &context] { record(context, kListens); };
  digest_weights();
  train_step_->set_up(context);
  began_ = step_began_ = context.now();
  start_logs(context);
  start_fit(context);
  began_fit_ = true;
  if (!changed_duration_.empty()) state_.max_duration = Time::parse(changed_duration_);
  follow_max_duration();
  if (over() && !changed_duration_.empty() && options_.rank == 0)
    log_.info("nothing is left to train: while the run of the checkpoint trained, max_duration became " +
              changed_duration_);
  reserve_copies(context);
  if (rest_.any() || over()) logger_.begin_step(state_.timestamp.batch);  // its rest
  if (rest_.any())
    complete(context);
  else if (over())
    finish(context, /*stopped=*/false);
  else
    await_batch(context);
  if (done_) return;
  const auto ahead = static_cast<int>(options_.recipe.at("data").at("train").at("prefetch").integer());
  context.send(cast_.loader, Credit{ahead});
}

void Compute::start_fit(Context& context) {
  run_event(context, Event::kFitStart);
  begun_duration_ = state_.max_duration.text();
  const int64_t trained = state_.timestamp.batch_in_epoch;
  if (!state_.composer || trained == options_.batches_per_epoch || over()) return;
  for (int64_t batch = 0; batch < trained; ++batch)
    run_event(context, Event::kBeforeDataloader);  // it reads over them
}

void Compute::start_logs(Context& context) {
  const Timestamp& time = state_.timestamp;
  logger_.begin_run(time.batch + 1);
  queues_.start(context, {state_.run_name, state_.run_dir, state_.rank, state_.world, state_.max_duration,
                          state_.dataloader_len, time, time.batch, goes_on(), resumed_from_});
}

// From a checkpoint of this run, and not of another.
bool Compute::goes_on() const {
  return !resumed_from_.empty() && lies_in(resumed_from_, options_.checkpoints);
}

bool Compute::over() const { return reached(state_.timestamp, state_.max_duration); }

void Compute::await_batch(Context& context) {
  const Timestamp& time = state_.timestamp;
  logger_.begin_step(time.batch + 1);
  if (time.batch_in_epoch == 0) {
    if (time.epoch_in_iteration == 0) run_event(context, Event::kIterationStart);
    run_event(context, Event::kEpochStart);
    trainer_log_.epoch_start();
  }
  run_event(context, Event::kBeforeDataloader);
}

void Compute::step(Context& context, BatchReady& ready) {
  unfinished_.reset();
  rest_ = {.event = name(Event::kAfterDataloader)};  // where it is done again, should it be void
  context.send(cast_.loader, Credit{});
  follow_max_duration();
  const Timestamp before = state_.timestamp;
  if (options_.before_step) options_.before_step(options_.rank, before.batch + 1, state_, ready.batch);
  record(context, "batch");
  if (recorder_.digests()) batch_digest_.take(before.batch, ready.batch.leaves());
  const double lr = rate_.at(before, state_.schedule);
  trainer_log_.batch_start(state_.model->tokens(ready.batch) > 0);
  logger_.begin_attempt();
  const TrainStep::Hooks hooks{[&](Verdict& mine) { vote(context, mine); }, [&] { logger_.void_attempt(); },
                               [&] { wait_for_copy(context); },
                               [&](Event event) { run_event(context, event); }};
  const Verdict verdict = train_step_->run(context, ready, lr, hooks);
  logger_.keep_attempt();
  state_.to_next_batch(static_cast<int64_t>(verdict.samples), static_cast<int64_t>(verdict.tokens),
                       verdict.seconds - before.total_wct);
  rate_.advance(before, state_.schedule);
  show_rate();
  report(context, before, verdict, lr);
  train_step_->grow_back();
  after_step(context, before, verdict);
  step_began_ = context.now();
}

// For those who log it.
void Compute::show_rate() {
  if (rate_.lags()) state_.optimizer->set_lr(rate_.at(state_.timestamp, state_.schedule));
}

// Durations in seconds are rank 0's, so that all ranks end on the same step. Evaluations and predictions do
// not count, as in Composer.
void Compute::vote(Context& context, Verdict& mine) const {
  if (options_.rank == 0)
    mine.seconds = recorder_.answer(
        "seconds", earlier_s_ + seconds(context.now() - began_) - evaluations_.seconds() - predicting_s_);
  mine.stop = stop_requested_ ? 1 : 0;
  mine.gave_up = recorder_.answer("gave up", gave_up_ ? 1.0 : 0.0);
}

void Compute::report(Context& context, const Timestamp& before, const Verdict& verdict, double lr) {
  if (!logger_.logs_steps()) return;
  StepReport report = step_report(state_, verdict, lr, context.now() - step_began_);
  report.metrics = trainer_log_.train_metrics();
  logger_.log_step(std::move(report), before);
}

void Compute::finish(Context& context, bool stopped) {
  if (!stopped) run_event(context, Event::kFitEnd);
  if (!stopped) rest_ = {.event = name(Event::kFitEnd)};  // at which algorithms have acted
  if (!stopped) stopped = !evaluate(context, evaluations_.due_at_the_end());
  if (!stopped) trainer_log_.fit_end();
  if (!stopped && goes_on_with_tasks(context, stopped)) return;
  if (give_up_at_the_end(context)) return;
  done_ = true;
  send_logged(context);
  queues_.end(context);
  const bool save = saved_at_ != state_.timestamp.batch;
  if (save) snapshot(context, /*last=*/true);
  if (!stopped && options_.rank == 0) write_text(context);
  wait_for_copy(context);
  engine_->close();
  record(context, kDone);
  context.send(cast_.supervisor, TrainingDone{stopped, save});
}

// Whether it trains on; `stopped`: a task was cut by a request to stop, and is not done.
bool Compute::goes_on_with_tasks(Context& context, bool& stopped) {
  while (tasks_.done < std::ssize(options_.tasks)) {
    stopped = stop_agreed_;
    const Task& task = options_.tasks[tasks_.done];
    if (!stopped && task.kind == Task::Kind::kEvaluate)
      stopped = !evaluate(context, labels_of(task), /*standalone=*/true);
    if (stopped) return false;
    if (task.kind == Task::Kind::kPredict) predict_alone(context, task);
    ++tasks_.done;
    if (task.kind != Task::Kind::kFit) continue;
    train_on(context, Time::parse(task.duration));
    return true;
  }
  return false;
}

Evaluations::Labels Compute::labels_of(const Task& task) const {
  Labels labels;
  for (const auto& one : options_.evaluators)
    if (task.label.empty() || task.label == one.label) labels.push_back(one.label);
  return labels;
}

// What is done so far is saved before more is trained.
void Compute::train_on(Context& context, const Time& duration) {
  state_.max_duration = state_.timestamp.get(duration.unit()) + duration;
  tasks_.until = state_.max_duration.text();
  follow_max_duration();
  rest_ = {};
  send_logged(context);
  if (checkpoint_every_->fires() && saved_at_ != state_.timestamp.batch) snapshot(context, /*last=*/false);
  start_fit(context);
  await_batch(context);
}

void Compute::predict_alone(Context& context, const Task& task) {
  if (options_.rank != 0) return;
  record(context, kPredicts);
  const TimePoint began = context.now();
  for (const auto& one : options_.evaluators)
    if (one.label == task.label) must_fit("prediction", [&] { predict(state_, *engine_, one, task.take); });
  predicting_s_ += recorder_.answer("prediction seconds", seconds(context.now() - began));
}

void Compute::write_text(Context& context) try {
  record(context, kWritesText);
  const AutocastScope autocast(state_.precision.autocast);
  const std::string text = state_.model->closing_text(options_.seed);
  if (!text.empty()) logger_.log_closing_text(text);
  queues_.send(context, logger_.take_entries());
} catch (const c10::Error& error) {
  log_.warning("no sample of text: " + one_line(error));
}

// What they found; nothing where the run was asked to stop.
std::optional<LoggedMetrics> Compute::evaluate(Context& context, const Labels& labels, bool standalone) {
  if (labels.empty()) return LoggedMetrics();
  queues_.send(context, logger_.take_entries());  // an evaluation may take long
  logger_.begin_attempt();
  evaluation_changed_ = false;
  auto all = evaluations_.run(context, *engine_, labels, standalone);
  if (!all) {
    logger_.void_attempt();
    return all;
  }
  logger_.keep_attempt();
  logger_.log_evaluation(*all);
  return all;
}

// Not what the evaluation at the end finds where none is due: a run that goes on from there later comes to
// the same as one that was not interrupted.
void Compute::observe(const LoggedMetrics& metrics) {
  if (!rate_.observe(metrics)) return;
  std::ostringstream text;
  text << "step " << state_.timestamp.batch + 1 << ": no improvement for long; the learning rate is now "
       << rate_.at(state_.timestamp, state_.schedule);
  log_.info(text.str());
}

void Compute::record(Context& context, const char* what, int64_t detail) {
  recorder_.record({context.now(), "compute", what, state_.timestamp.batch, detail});
}

}  // namespace tutti

#include "actors/compute/training_loop.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "models/model.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "runtime/text.h"
#include "tensors/memory/torch_error.h"
#include "training/token_text.h"

namespace tutti {
namespace {

using enum ResumePoint::Place;

constexpr int64_t kSkippedForGood = 10;  // steps in a row

void add_transforms(Context& context, const TrainingLoop::Parts& with) {
  AddTransforms message{with.state.added_transforms};
  if (!with.job.per_rank_train.empty())
    for (auto& transform : message.added)
      transform.name = owner_of(with.state.topology.rank) + transform.name;
  if (!message.added.empty()) context.send(with.actors.loader, std::move(message));
}

void write_text(Context& context, const TrainingLoop::Parts& with) try {
  const State& state = with.state;
  const TokenTextPtr text = token_text_of(state.dataset, state.model->vocabulary());
  if (!text) return;
  const auto write = [&] {
    with.recorder.record({context.now(), TraceKind::kWritesText, state.timestamp.batch});
    with.run_log.text_sample(context, state.closing_text(*text, state.seed));
  };
  const auto failure =
      state.services->attempt([&] { state.with_model(state.topology.rank == 0, write, kClosingTokens); });
  if (failure) with.log.warning("no sample of text: " + *failure);
} catch (const c10::Error& error) {
  with.log.warning("no sample of text: " + one_line(error));
}

}  // namespace

TrainingLoop::TrainingLoop(const Parts& parts)
    : with_(parts),
      batch_digest_("compute/batch", parts.recorder, TensorsDigest::kWhole),
      loop_state_(parts, parts.train_step, parts.evaluations) {}

void TrainingLoop::run(Context& context) try {
  begin(context);
  const bool trained = train(context);
  finish(context, /*stopped=*/!trained);
} catch (const AgreedOutOfMemory& error) {
  give_up(context, error);
} catch (const OutOfMemory& error) {
  context.send(with_.actors.supervisor, TrainingDone{.failure = error, .alone = true});
} catch (const std::exception& error) {
  if (!is_lack_of_memory(error)) throw;
  const std::string where = place().substr(0, place().rfind(": "));
  context.send(with_.actors.supervisor, TrainingDone{.failure = OutOfMemory(where, error), .alone = true});
}

// A function that returns bool returns false if the run is asked to stop; `pending` then has the pending
// work.

bool TrainingLoop::train(Context& context) {
  const auto evaluated = [&](const Labels& labels) {
    return evaluate(context, labels, /*standalone=*/true).has_value();
  };
  for (;;) {
    if (!fit(context) || !end_fit(context) || (stop_agreed_ && !loop_state_.tasks.done())) return false;
    const ProgramTasks::Result result = loop_state_.tasks.run(context, evaluated);
    if (result != ProgramTasks::Result::kTrainsOn) return result == ProgramTasks::Result::kAllDone;
    train_on(context);
  }
}

bool TrainingLoop::fit(Context& context) {
  ResumePoint::Place place = loop_state_.resume_place();
  while (place != kAtStep || !with_.times.over()) {
    if (place == kAtStep && with_.times.stops_here()) return false;
    switch (std::exchange(place, kAtStep)) {
      case kAtFitEnd:  // resume_place() returns kAtStep
      case kAtStep:
        begin_batch(context);
        train_batch(context);
        [[fallthrough]];
      case kAtBatchEnd:
        if (!evaluate_due(context)) return false;
        run_event(context, Event::kBatchCheckpoint);
        if (!with_.times.epoch_is_over()) break;
        end_epoch(context);
        [[fallthrough]];
      case kAtEpochEnd:
        if (!evaluate_due(context)) return false;
        run_event(context, Event::kEpochCheckpoint);
        if (!with_.times.iteration_is_over()) break;
        with_.state.timestamp.to_next_iteration();
        run_event(context, Event::kIterationEnd);
        run_event(context, Event::kIterationCheckpoint);
    }
    if (!end_step(context)) return false;
  }
  return true;
}

void TrainingLoop::begin_batch(Context& context) {
  const Timestamp& time = with_.state.timestamp;
  step_ = time.batch + 1;
  with_.run_log.begin_step(step_);
  if (loop_state_.best) loop_state_.best->begin_step();
  if (time.batch_in_epoch == 0) {
    if (time.epoch_in_iteration == 0) run_event(context, Event::kIterationStart);
    run_event(context, Event::kEpochStart);
    with_.run_log.trainer().epoch_start();
  }
  run_event(context, Event::kBeforeDataloader);
}

// From AFTER_DATALOADER to BATCH_END.
void TrainingLoop::train_batch(Context& context) {
  State& state = with_.state;
  const TimePoint waits = context.now();
  const BatchReady ready = next_batch(context);
  const Nanoseconds data_wait = context.now() - waits;
  context.send(with_.actors.loader, Credit{});
  with_.times.follow_max_duration();
  const Timestamp before = state.timestamp;
  if (with_.job.before_step) with_.job.before_step(state.topology.rank, before.batch + 1, state, ready.batch);
  record(context, TraceKind::kBatch);
  if (with_.recorder.digests()) batch_digest_.record(before.batch, ready.batch.leaves());
  arrived(ready.copy);
  const double lr = with_.times.lr();
  with_.run_log.trainer().batch_start(state.model->tokens(ready.batch) > 0);
  const Verdict verdict = with_.train_step.run(ready, lr);
  state.next_lr.reset();
  state.to_next_batch(static_cast<int64_t>(verdict.samples), static_cast<int64_t>(verdict.tokens),
                      verdict.seconds - before.total_wct);
  with_.times.advance(before);
  with_.run_log.step_done(before, verdict, lr, {context.now() - step_began_, data_wait, ready.took});
  with_.train_step.memory().grow_back();
  loop_state_.pending = {kAtBatchEnd, with_.evaluations.due_at_batch_end(before)};
  run_event(context, Event::kBatchEnd);
  stop_agreed_ = verdict.stop > 0;
  if (stop_agreed_ && verdict.stop < state.topology.world)
    TUTTI_PROBE("stop: agreed before all ranks know of it");
  checkpoint_due_ = with_.times.checkpoint_at_batch_end(before);
}

std::string TrainingLoop::place() const {
  const int64_t step = std::max(step_, with_.state.timestamp.batch);
  return (step > 0 ? "step " + std::to_string(step) + ", " : "") + "Compute: ";
}

BatchReady TrainingLoop::next_batch(Context& context) {
  if (!std::exchange(reads_ahead_, true)) {
    add_transforms(context, with_);
    context.send(with_.actors.loader, Credit{with_.job.settings.train_data.prefetch});
  }
  for (;;) {
    Envelope envelope = context.receive();
    if (auto* ready = envelope.message.get_if<BatchReady>()) return std::move(*ready);
    if (!envelope.message.get_if<StopRequested>()) TUTTI_ASSERT(false, envelope.message.name());
    TUTTI_PROBE("stop: asked for while Compute waits for a batch");
    request_stop();
  }
}

void TrainingLoop::end_epoch(Context& context) {
  if (!with_.times.over())
    run_event(context, Event::kBeforeDataloader);  // as Composer, before it finds no more batches
  with_.run_log.trainer().epoch_trained();
  const Timestamp before = with_.state.timestamp;
  with_.times.advance_epoch(before);
  with_.state.timestamp.to_next_epoch();
  loop_state_.pending = {kAtEpochEnd, with_.evaluations.due_at_epoch_end(before)};
  run_event(context, Event::kEpochEnd);
  checkpoint_due_ = with_.times.checkpoint_at_epoch_end(before) || checkpoint_due_;
}

bool TrainingLoop::end_step(Context& context) {
  if (!stop_agreed_ && with_.times.stops_here()) evaluate_before_stop(context);
  loop_state_.pending = {};
  with_.run_log.end_step(context);
  record(context, TraceKind::kStepDone);
  step_began_ = context.now();
  const bool requested = std::exchange(with_.state.checkpoint_requested, false);
  if (with_.times.over() && stop_agreed_) TUTTI_PROBE("stop: agreed in the last step");
  if (with_.times.over()) return true;
  if (stop_agreed_ || with_.times.stops_here()) return false;
  if (requested || checkpoint_due_)
    with_.snapshots.take(context, loop_state_.save(), Snapshots::Kind::kBesideTraining);
  return true;
}

// So that runs that stop at the same time can be compared. As at the end of training, the learning rate
// observes no metrics.
void TrainingLoop::evaluate_before_stop(Context& context) {
  const auto due = with_.evaluations.due_at_the_end();
  if (due.empty()) return;
  with_.run_log.logger().evaluation_due();
  evaluate(context, due);
}

// A run that is asked to stop leaves due evaluations to the run that resumes.
bool TrainingLoop::evaluate_due(Context& context) {
  if (loop_state_.pending.labels.empty()) return true;
  with_.run_log.logger().evaluation_due();  // before the next line: a stopped run resumes there
  if (stop_agreed_) TUTTI_PROBE("stop: a due evaluation is left to the run that resumes");
  const auto metrics = stop_agreed_ ? std::nullopt : evaluate(context, loop_state_.pending.labels);
  if (!metrics) return false;
  loop_state_.pending.labels.clear();
  if (!with_.times.observe(*metrics)) return true;
  std::ostringstream text;
  text << "step " << with_.state.timestamp.batch + 1 << ": no improvement for long; the learning rate is now "
       << with_.times.lr();
  with_.log.info(text.str());
  return true;
}

// The metrics of the final evaluation are not observed by the learning rate, so that a run continued later
// has the same rates as an uninterrupted run.
bool TrainingLoop::end_fit(Context& context) {
  if (loop_state_.pending.at != kAtFitEnd) run_event(context, Event::kFitEnd);
  loop_state_.pending = {kAtFitEnd, with_.evaluations.due_at_the_end()};
  if (!evaluate(context, loop_state_.pending.labels)) {
    TUTTI_PROBE("stop: the last evaluation is left unfinished");
    return false;
  }
  loop_state_.pending = {};
  with_.run_log.trainer().fit_end();
  return true;
}

// The metrics; nullopt if the run is asked to stop.
std::optional<LoggedMetrics> TrainingLoop::evaluate(Context& context, const Labels& labels, bool standalone) {
  if (labels.empty()) return LoggedMetrics();
  with_.run_log.send(context);  // an evaluation may take long
  StepLog& log = with_.run_log.logger();
  log.begin_attempt();
  auto all = with_.evaluations.run(context, with_.engine, labels, standalone);
  if (!all) {
    TUTTI_PROBE("stop: an evaluation is left unfinished");
    log.abort_attempt();
    return all;
  }
  log.keep_attempt();
  log.log_evaluation(*all);
  watch_best(*all);
  return all;
}

// All ranks see the same metrics, and so request the same checkpoints.
void TrainingLoop::watch_best(const LoggedMetrics& metrics) {
  if (!loop_state_.best) return;
  const auto best = std::ranges::find(metrics, with_.times.best_metric(), &LoggedMetrics::value_type::first);
  if (best != metrics.end() && loop_state_.best->observe(best->second))
    with_.state.checkpoint_requested = true;
}

void TrainingLoop::run_event(Context& context, Event event) try {
  with_.engine.run_event(event, [&] { with_.snapshots.wait_for_copy(context); });
} catch (const std::exception& error) {
  if (!is_lack_of_memory(error)) throw;
  throw OutOfMemory(name(event) + (" after step " + std::to_string(with_.state.timestamp.batch)), error);
}

void TrainingLoop::begin(Context& context) {
  record(context, TraceKind::kBegins);
  with_.snapshots.digest_weights();
  with_.train_step.set_up(context);
  with_.services.begin(context, with_.train_step);
  with_.state.optimizer->set_sum_over_shards(with_.state.sum_over_shards());
  step_began_ = context.now();
  with_.times.begin(step_began_, loop_state_.earlier_s);
  first_step_ = with_.state.timestamp.batch;
  with_.run_log.start(context, loop_state_.resumed);
  start_fit(context);
  if (!loop_state_.changed_duration().empty())
    with_.state.max_duration = Time::parse(loop_state_.changed_duration());
  with_.times.follow_max_duration();
  if (with_.times.over() && !loop_state_.changed_duration().empty() && with_.state.topology.rank == 0)
    with_.log.info("nothing is left to train: while the run of the checkpoint trained, max_duration became " +
                   loop_state_.changed_duration());
  const auto copies = static_cast<double>(with_.snapshots.reserve(context));
  with_.train_step.memory().ledger().add(HeldFor::kCopies, [copies] { return copies; });
  if (loop_state_.pending.any() || with_.times.over())
    with_.run_log.begin_step(with_.state.timestamp.batch);  // to complete it
}

void TrainingLoop::start_fit(Context& context) {
  run_event(context, Event::kFitStart);
  loop_state_.fit_began();
  const int64_t trained = with_.state.timestamp.batch_in_epoch;
  if (!with_.state.composer || with_.times.epoch_is_over() || with_.times.over()) return;
  for (int64_t batch = 0; batch < trained; ++batch)
    run_event(context, Event::kBeforeDataloader);  // Composer skips trained batches this way
}

// Trains on for a task. The state until now is saved first.
void TrainingLoop::train_on(Context& context) {
  with_.state.stop_reason.reset();
  with_.times.follow_max_duration();
  with_.run_log.end_step(context);
  if (with_.times.checkpoints_fire() && !with_.snapshots.is_saved())
    with_.snapshots.take(context, loop_state_.save(), Snapshots::Kind::kBesideTraining);
  start_fit(context);
}

void TrainingLoop::finish(Context& context, bool stopped) {
  const TrainingEnded end = ended(stopped);
  with_.run_log.training_ended(end);
  with_.run_log.end_step(context);
  with_.run_log.end(context);
  const bool save = !with_.snapshots.is_saved();
  if (!save) TUTTI_PROBE("checkpoint: the last step was saved already");
  if (save) with_.snapshots.take(context, loop_state_.save(), Snapshots::Kind::kLast);
  if (!stopped) write_text(context, with_);
  with_.snapshots.wait_for_copy(context);
  with_.engine.close();
  record(context, TraceKind::kDone);
  context.send(
      with_.actors.supervisor,
      TrainingDone{.stopped = stopped, .checkpoint_follows = save, .skipping = end.skipped_at_end > 0});
}

TrainingEnded TrainingLoop::ended(bool stopped) const {
  const State& state = with_.state;
  TrainingEnded ended{.skipped_steps = with_.train_step.skips().total, .max_duration = state.max_duration};
  if (stopped) {
    ended.why = !stop_agreed_ && with_.times.stops_here() ? TrainingEnd::kStopAt : TrainingEnd::kRequest;
  } else if (state.stop_reason) {
    ended.why = TrainingEnd::kStopTraining;
    ended.stop_reason = *state.stop_reason;
    TUTTI_PROBE("end: a callback stops the training");
  } else if (first_step_ > 0 && state.timestamp.batch == first_step_) {
    ended.why = TrainingEnd::kNothingLeft;
  }
  const int64_t in_a_row = with_.train_step.skips().in_a_row;
  if (!stopped && in_a_row > 0 && in_a_row >= std::min(kSkippedForGood, state.timestamp.batch))
    ended.skipped_at_end = in_a_row;
  return ended;
}

// All ranks know that a step or an evaluation is too large for the memory, and has changed nothing. The state
// until then is saved before the run ends.
void TrainingLoop::give_up(Context& context, const AgreedOutOfMemory& why) {
  with_.run_log.logger().abort_attempt();
  if (loop_state_.pending.any() || with_.times.over()) with_.run_log.end_step(context);
  with_.run_log.end(context);
  Snapshots& snapshots = with_.snapshots;
  const bool save = with_.state.timestamp.batch > 0 && !snapshots.is_saved();
  if (save && loop_state_.pending.any())
    TUTTI_PROBE("end: memory ran out in an evaluation, and the step before is saved");
  if (save && !loop_state_.pending.any())
    TUTTI_PROBE("end: memory ran out in a step, and the step before is saved");
  if (!save && snapshots.taken() == 0) {
    TUTTI_PROBE("end: memory ran out before this attempt had anything to save");
    throw why;
  }
  if (!save) TUTTI_PROBE("end: memory ran out right after a checkpoint");
  if (save) snapshots.take(context, loop_state_.save(), Snapshots::Kind::kForGood);
  snapshots.wait_for_copy(context);
  record(context, TraceKind::kDone);
  context.send(with_.actors.supervisor, TrainingDone{.failure = why, .checkpoints = snapshots.taken()});
}

void TrainingLoop::record(Context& context, TraceKind kind) {
  with_.recorder.record({context.now(), kind, with_.state.timestamp.batch});
}

}  // namespace tutti

#include "actors/compute/compute.h"

#include <c10/util/Exception.h>

#include <typeinfo>
#include <utility>

#include "data/dataset.h"
#include "data/texts/task_tokens.h"
#include "job/algorithms.h"
#include "job/evaluation_data.h"
#include "job/resume.h"
#include "models/layers/layer_error.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "runtime/text.h"
#include "sharding/activation_checkpointing.h"
#include "sharding/units.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"
#include "training/callbacks/factory.h"
#include "training/evaluation/evaluation.h"

namespace tutti {

Compute::Compute(const Job& job, const Device& device, Engine::Options listeners, const RankActors& actors,
                 Disk& disk, Log& log, Recorder& recorder)
    : job_(job),
      actors_(actors),
      disk_(disk),
      log_(log),
      recorder_(recorder),
      listeners_(std::move(listeners)),
      services_(std::make_shared<ComputeServices>(state_, recorder)),
      run_log_(state_, actors_, log),
      evaluations_(state_, job.evaluators, actors_, recorder,
                   [this](Context& context, Event event) { loop_->run_event(context, event); }),
      times_(job, state_, evaluations_),
      snapshots_(job, state_, actors_, log, recorder) {
  state_.services = services_;
  state_.device = device;
}

Compute::~Compute() = default;

// During training TrainingLoop receives the messages.
void Compute::receive(Context& context, Envelope& envelope) try {
  state_.device.use();
  Message& message = envelope.message;
  if (auto* join_message = message.get_if<Join>()) {
    join(join_message->topology);
  } else if (auto* request = message.get_if<Verify>()) {
    recorder_.record({context.now(), TraceKind::kVerifies, state_.timestamp.batch});
    context.send(actors_.supervisor, verify(*request));
  } else if (auto* start = message.get_if<Prepare>()) {
    recorder_.record({context.now(), TraceKind::kPrepares, state_.timestamp.batch});
    context.send(actors_.supervisor, prepare(*start));
  } else if (message.get_if<Start>()) {
    if (stop_requested_) {
      TUTTI_PROBE("stop: asked for before training starts");
      loop_->request_stop();
    }
    train(context);
  } else if (message.get_if<StopRequested>()) {
    TUTTI_PROBE("stop: asked for outside of training");
    stop_requested_ = true;
  } else if (message.get_if<Stop>()) {
    context.stop();
  } else {
    TUTTI_ASSERT(message.get_if<BatchReady>(), message.name());
    TUTTI_PROBE("loader: a batch read ahead is not needed");
  }
} catch (const c10::Error& error) {
  throw OperatingError(one_line(error));
}

void Compute::join(const RankTopology& place) {
  job_.describe_to(state_, place);
  state_.eval_samples = 0;
  for (const auto& evaluator : job_.evaluators) state_.eval_samples += evaluator.samples(place.data_world);
}

// An error in mid-run says at which step.
void Compute::train(Context& context) try { loop_->run(context); } catch (const RunError& error) {
  if (typeid(error) == typeid(UserError) || typeid(error) == typeid(LayerError))
    throw UserError(loop_->place() + error.what(), error.kind());
  if (typeid(error) != typeid(OperatingError) && typeid(error) != typeid(RunError))
    throw;  // of those that name the step, or are no errors
  throw OperatingError(loop_->place() + error.what(), error.kind());
} catch (const c10::Error& error) {
  throw OperatingError(loop_->place() + one_line(error));
} catch (const std::exception& error) {
  throw OperatingError(loop_->place() + one_line(error), end_by(error).kind);
}

Verified Compute::verify(const Verify& request) {
  Verified result;
  try {
    verify_files(disk_, open_checkpoint(disk_, request.checkpoint),
                 {state_.topology.world, state_.topology.rank});
  } catch (const OperatingError& error) {
    const bool hidden = !disk_.exists(request.checkpoint + "/manifest.json");
    TUTTI_PROBE("resume: a rank finds damage in the checkpoint to resume from");
    result = {hidden ? FilesFound::kHidden : FilesFound::kDamaged, error.what()};
  }
  const auto files = static_cast<double>(result.files);
  result.files = static_cast<FilesFound>(recorder_.input(RecordedInput::kVerification, files));
  return result;
}

Prepared Compute::prepare(const Prepare& start) {
  try {
    complete_algorithms(start);
    add_listeners();
    build_model();
    if (!state_.precision_note.empty()) rank_zero_warning()(state_.precision_note);
    if (start.checkpoint.empty() && !state_.weights_note.empty()) rank_zero_warning()(state_.weights_note);
    loop_.emplace(
        TrainingLoop::Parts{train_step_->parts(), *services_, run_log_, *train_step_, evaluations_});
    engine_->run_event(Event::kBeforeLoad);
    add_listener_tensors(state_, *engine_);
    if (!start.checkpoint.empty()) restore(start);
    engine_->require();
    engine_->run_event(Event::kAfterLoad);
    follow_surgery(state_, job_.seed);
  } catch (const std::exception& error) {
    if (end_by(error).kind == EndKind::kInterrupted) throw;
    return {.error = whole_text(error), .lacks_memory = tells_lack_of_memory(error)};
  }
  const Timestamp& time = state_.timestamp;
  return {"",
          times_.epoch_is_over() ? DataPosition{time.epoch + 1, 0}
                                 : DataPosition{time.epoch, time.batch_in_epoch},
          time.batch};
}

// Adds the algorithms that the checkpoint's weights need, before the model is built.
void Compute::complete_algorithms(const Prepare& start) try {
  Checkpoint from{start.checkpoint, {}};
  if (!from.folder.empty()) from.manifest = read_manifest(disk_, from.folder);
  state_.required_algorithms = add_required_algorithms(
      listeners_.algorithms, job_, from, start.own ? LoadOptions() : job_.from.options, rank_zero_warning());
} catch (const std::exception& error) {
  blame(start, error);
}

void Compute::add_listeners() {
  for (auto& callback : make_callbacks(job_.recipe, {disk_}))
    listeners_.callbacks.push_back(std::move(callback));
  listeners_.log_traces |= job_.settings.train.log_traces;
  if (!listeners_.warn) listeners_.warn = [this](const std::string& what) { log_.warning(what); };
  engine_ = std::make_unique<Engine>(state_, run_log_.logger(), listeners_);
}

void Compute::build_model() {
  run_log_.trainer().start(job_.settings.train.auto_log_hparams ? &job_.recipe : nullptr);
  train_step_.emplace(TrainStep::Parts{job_, actors_, log_, recorder_, state_, *engine_, run_log_.logger(),
                                       snapshots_, times_});
  build(state_, job_.recipe, job_.spec(), job_.seed, job_.make_model,
        [this] { engine_->run_event(Event::kInit); });
  const ShardingSettings& sharding = job_.settings.sharding;
  for (const std::string& unit : unmatched_units(*state_.model, sharding.units))
    sharding.units.fail("the model has no layer of the kind or name '" + unit + "'");
  require_checkpointed(*state_.model, sharding);
  times_.plan();
  for (const auto& evaluator : job_.evaluators) {
    require_takes_samples(state_, job_, evaluator);
    if (evaluator.names_metrics() || is_language_task(evaluator.data->spec()))
      try_metrics(state_, evaluator, *evaluator.data_of(state_.topology.rank));
  }
  state_.measured = measured_metrics(job_.evaluators, *state_.model);
}

void Compute::restore(const Prepare& start) try {
  RunState saved = resume(state_, disk_, open_checkpoint(disk_, start.checkpoint), job_,
                          start.own ? LoadOptions() : job_.from.options, rank_zero_warning());
  if (start.own || !job_.from.options.weights_only)
    loop_->state().restore(std::move(saved), start.checkpoint);
  else
    loop_->state().resumed.folder = start.checkpoint;  // all other state is new
} catch (const std::exception& error) {
  blame(start, error);
}

Warn Compute::rank_zero_warning() const {
  return [this](const std::string& what) {
    if (state_.topology.rank == 0) log_.warning(what);
  };
}

// The error is the checkpoint's.
void Compute::blame(const Prepare& start, const std::exception& error) const {
  if (start.checkpoint.empty()) throw UserError(whole_text(error));
  const Setting& key = start.own ? job_.from.autoresume : job_.from.load_path;
  if (const auto* known = dynamic_cast<const RunError*>(&error)) key.fail(*known);
  key.fail(one_line(error));
}

}  // namespace tutti

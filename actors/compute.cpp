#include "actors/compute.h"

#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>

#include <bit>
#include <limits>
#include <sstream>

#include "actors/evaluation.h"
#include "actors/heartbeat.h"
#include "actors/resume.h"
#include "runtime/error.h"
#include "tensors/finite.h"
#include "tensors/meter.h"
#include "tensors/torch_error.h"

namespace tutti {
namespace {

constexpr double kBytesPerMb = 1e6;
constexpr const char* kFailedAllocation = "failed allocation";  // of an attempt; 0 = none
constexpr Nanoseconds kLongWait = std::chrono::seconds(1);

int64_t bucket_bytes(const Setting& recipe) {
  return static_cast<int64_t>(recipe.at("collectives").at("bucket_mb").number() * (int64_t{1} << 20));
}

template <class Tensors, class TensorOf>
double bytes_of(const Tensors& tensors, TensorOf tensor_of) {
  double bytes = 0;
  for (const auto& one : tensors) bytes += static_cast<double>(tensor_of(one).nbytes());
  return bytes;
}

// What cannot be done again in smaller parts.
template <class Work>
void must_fit(const std::string& what, Work work) try {
  work();
} catch (const c10::OutOfMemoryError& error) {
  throw OperatingError(what +
                       ": out of memory, and it cannot be done in smaller parts; the last checkpoint " +
                       "is good, and --resume auto goes on from it: " + one_line(error));
}

}  // namespace

Compute::Compute(Options options, const Cast& cast, Disk& disk, Log& log, Recorder& recorder)
    : options_(std::move(options)),
      cast_(cast),
      disk_(disk),
      log_(log),
      recorder_(recorder),
      batch_digest_("compute/batch", recorder),
      weights_digest_("compute/weights", recorder, std::numeric_limits<int64_t>::max() / 2) {}

Compute::~Compute() {
  Meter::set_budget(options_.memory_slot, 0);
  Meter::charge(options_.memory_slot, -charged_bytes_);
}

void Compute::receive(Context& context, Envelope& envelope) try {
  Message& message = envelope.message;
  if (auto* ready = message.get_if<BatchReady>()) {
    if (!done_) step(context, *ready);
  } else if (auto* order = message.get_if<Prepare>()) {
    record(context, kPrepares);
    context.send(cast_.supervisor, prepare(order->checkpoint));
  } else if (auto* start = message.get_if<Start>()) {
    begin(context, *start);
  } else if (message.get_if<StopRequested>()) {
    stop_requested_ = true;
  } else if (message.get_if<Stop>()) {
    context.stop();
  } else {
    TUTTI_ASSERT(false, message.name());
  }
} catch (const c10::Error& error) {
  throw OperatingError(one_line(error));
}

Prepared Compute::prepare(const std::string& checkpoint) {
  try {
    const Setting& train = options_.recipe.at("train");
    max_duration_ = Time::parse(train.at("max_duration"));
    accumulation_.emplace(train);
    eval_every_.emplace(Time::parse(train.at("eval_interval")), max_duration_);
    checkpoint_every_.emplace(Time::parse(options_.recipe.at("checkpoint").at("interval")), max_duration_);
    trainee_ = make_trainee(options_.recipe, options_.spec, options_.seed, options_.make_model);
    rate_ = LearningRate(options_.recipe, *trainee_, {max_duration_, options_.batches_per_epoch},
                         cast_.has_eval && eval_every_->fires());
    if (!checkpoint.empty()) restore(checkpoint);
  } catch (const std::exception& error) {
    return {one_line(error), {}, 0};
  }
  return {"", {time_.epoch, time_.batch_in_epoch}, time_.batch};
}

void Compute::restore(const std::string& folder) try {
  const Checkpoint checkpoint = read_checkpoint(disk_, folder);
  const RunState state = resume(
      *trainee_, checkpoint, {options_.seed, options_.global_batch, options_.data_digest, options_.recipe});
  resumed_from_ = folder;
  time_.epoch = state.epoch;
  time_.batch = saved_at_ = state.step;
  time_.batch_in_epoch = state.batch_in_epoch;
  time_.sample = state.sample;
  time_.token = state.token;
  time_.sample_in_epoch = state.sample_in_epoch;
  time_.token_in_epoch = state.token_in_epoch;
  time_.total_wct = earlier_s_ = state.seconds;
  accumulation_->restore(state.accumulation);
  rate_.restore(state.plateau);
} catch (const std::exception& error) {
  options_.resume.fail(one_line(error));
}

void Compute::begin(Context& context, const Start&) {
  record(context, "begins");
  digest_weights();
  set_up_reduction(context);
  began_ = step_began_ = context.now();
  if (cast_.has_reporter) context.send(cast_.reporter, ReportFrom{time_.batch, resumed_from_});
  if (reached(time_, max_duration_)) {
    finish(context, /*stopped=*/false);
    return;
  }
  const auto ahead = static_cast<int>(options_.recipe.at("data").at("train").at("prefetch").integer());
  context.send(cast_.loader, Credit{ahead});
}

// Buckets are made here, once every rank has said that it can train: allocating them is collective.
void Compute::set_up_reduction(Context& context) {
  if (options_.world > 1) {
    const auto full = [this, &context](int bucket) {
      record(context, "bucket full", bucket);
      context.send(cast_.sync, ReduceBucket{bucket});
    };
    buckets_ = std::make_unique<GradientBuckets>(trainee_->parameters, bucket_bytes(options_.recipe), full);
    AllocateBuckets wanted;
    for (const auto& bucket : buckets_->plan().buckets) wanted.bytes.push_back(bucket.bytes);
    const auto memory = context.ask<BucketMemory>(cast_.sync, std::move(wanted)).buckets;
    buckets_->bind(memory);
    for (std::size_t b = 0; b < memory.size(); ++b) {
      plan_.buckets.push_back(memory[b].view(buckets_->plan().buckets[b].dtype));
      if (!Meter::counts(memory[b])) charged_bytes_ += static_cast<int64_t>(memory[b].nbytes());
    }
    plan_.parts = buckets_->parts();
  }
  Meter::charge(options_.memory_slot, charged_bytes_);
  Meter::set_budget(options_.memory_slot, options_.memory_budget);
  microbatches_ = std::make_unique<Microbatches>(*trainee_, buckets_.get(), accumulation_->count(time_.batch),
                                                 options_.seed, options_.memory_slot);
  plan_.statistics = microbatches_->statistics_size();
  plan_.step = time_.batch;
  context.send(cast_.sync, SetPlan(plan_));
}

void Compute::step(Context& context, BatchReady& ready) {
  context.send(cast_.loader, Credit{});
  const Timestamp before = time_;
  if (options_.before_step) options_.before_step(options_.rank, time_.batch + 1, *trainee_, ready.batch);
  Meter::reset_peak(options_.memory_slot);
  record(context, "batch");
  if (recorder_.digests()) batch_digest_.take(time_.batch, ready.batch.leaves());
  use_accumulation(context);
  const double lr = rate_.at(time_);
  Attempt done = attempt(context, ready.batch);
  while (done.all.verdict.out_of_memory > 0) {
    done.all = {};  // what was gathered is void too
    make_room(context, ready, done.mine);
    done = attempt(context, ready.batch);
  }
  const Verdict& verdict = done.all.verdict;
  trainee_->optimizer->set_lr(lr);
  must_fit("step " + std::to_string(time_.batch + 1) + ", its update", [&] { commit(context, done.all); });
  microbatches_->end_step();
  time_.to_next_batch(static_cast<int64_t>(verdict.samples), static_cast<int64_t>(verdict.tokens),
                      verdict.seconds - time_.total_wct);
  report(context, verdict, lr);
  grow_back();
  after_step(context, before, verdict, ready.last_of_epoch);
  step_began_ = context.now();
}

Compute::Attempt Compute::attempt(Context& context, const Batch& batch) {
  const auto trace = [&](const char* what, int64_t microbatch) { record(context, what, microbatch); };
  Attempt done;
  if (const auto ordinal = recorder_.foretold(kFailedAllocation))
    fail_as_recorded(static_cast<int64_t>(*ordinal));
  done.mine = microbatches_->run(batch, time_.batch, trace);
  recorder_.answer(kFailedAllocation,
                   done.mine.shortage ? static_cast<double>(done.mine.shortage->ordinal) : 0.0);
  if (done.mine.shortage)
    record(context, "out of memory at allocation", done.mine.shortage->ordinal);
  else
    record(context, "backward done");
  if (!done.mine.shortage && recorder_.digests())
    recorder_.digest({"compute/loss", time_.batch, std::bit_cast<uint64_t>(done.mine.loss_sum)});
  done.all = context.ask<StepFinished>(cast_.sync,
                                       FinishStep{local_verdict(context, done.mine), done.mine.statistics});
  return done;
}

// In a replay memory runs out where it once did, at the same allocation of the attempt, and nowhere else.
void Compute::fail_as_recorded(int64_t ordinal) {
  Meter::set_budget(options_.memory_slot, 0);
  Meter::fail_at(options_.memory_slot, ordinal > 0 ? std::vector{ordinal} : std::vector<int64_t>());
}

// The attempt was void on all ranks, whichever of them ran out of memory. They all come here, and to the
// same.
void Compute::make_room(Context& context, const BatchReady& ready, const MicrobatchResult& mine) {
  record(context, "void", microbatches_->count());
  const std::string step = "step " + std::to_string(time_.batch + 1) + ": ";
  if (mine.leftover_bytes > 0)
    log_.warning(step + std::to_string(mine.leftover_bytes) + " bytes of the void attempt are still held");
  const auto row = shortage_row(shortage(mine, ready.batch), options_.rank, options_.world);
  const auto all = shortages_of(context.ask<Summed>(cast_.sync, SumDoubles{row}).values);
  const std::string who = step + shortage_text(all);
  const int64_t largest = (ready.global_samples + options_.world - 1) / options_.world;
  if (!accumulation_->out_of_memory(time_, largest)) {
    const std::string why = accumulation_->automatic()
                                ? " with one sample at a time, and there is nothing smaller"
                                : "; grad_accum = \"auto\" would go on in smaller microbatches";
    throw OperatingError(who + why + "; what held it: " + what_held_memory(all));
  }
  use_accumulation(context);
  log_.warning(who + "; grad_accum is now " + std::to_string(microbatches_->count()));
}

Shortage Compute::shortage(const MicrobatchResult& mine, const Batch& batch) const {
  if (!mine.shortage) return {};
  Shortage found;
  found.ranks = 1;
  found.asked = static_cast<double>(mine.shortage->asked_bytes);
  found.used = static_cast<double>(mine.shortage->used_bytes);
  found.budget = static_cast<double>(mine.shortage->budget_bytes);
  found.parameters = bytes_of(trainee_->views, [](const ParamView& view) { return view.tensor; });
  found.gradients = buckets_ ? bytes_of(plan_.buckets, [](const at::Tensor& bucket) { return bucket; })
                             : static_cast<double>(mine.gradient_bytes);
  found.optimizer =
      bytes_of(trainee_->optimizer->state(), [](const OptimizerState& one) { return one.tensor; });
  found.batch = bytes_of(batch.leaves(), [](const auto& leaf) { return leaf.second; });
  return found;
}

void Compute::use_accumulation(Context& context) {
  const int count = accumulation_->count(time_.batch);
  if (count == microbatches_->count()) return;
  microbatches_->set_count(count);
  plan_.statistics = microbatches_->statistics_size();
  plan_.step = time_.batch;
  context.send(cast_.sync, SetPlan(plan_));
}

void Compute::grow_back() {
  if (accumulation_->committed(time_))
    log_.info("step " + std::to_string(time_.batch + 1) +
              ": memory has sufficed for long; grad_accum is now " +
              std::to_string(accumulation_->count(time_.batch)));
}

// Durations in seconds are rank 0's, so that all ranks end on the same step.
Verdict Compute::local_verdict(Context& context, const MicrobatchResult& result) const {
  Verdict verdict;
  if (options_.rank == 0)
    verdict.seconds = recorder_.answer("seconds", earlier_s_ + seconds(context.now() - began_));
  verdict.out_of_memory = result.shortage ? 1 : 0;
  verdict.non_finite = result.finite ? 0 : 1;
  verdict.stop = stop_requested_ ? 1 : 0;
  verdict.samples = static_cast<double>(result.samples);
  verdict.tokens = static_cast<double>(result.tokens);
  verdict.loss_sum = result.loss_sum;
  verdict.loss_weight = result.loss_weight;
  verdict.memory_peak = {static_cast<double>(Meter::peak_bytes(options_.memory_slot))};
  return verdict;
}

void Compute::commit(Context& context, const StepFinished& finished) {
  wait_for_copy(context);
  for (std::size_t p = 0; p < trainee_->views.size(); ++p)
    trainee_->views[p].grad = buckets_ ? buckets_->gradients()[p] : trainee_->views[p].tensor.grad();
  const char* bad = not_finite(finished.verdict);
  if (bad) {
    log_.warning("step " + std::to_string(time_.batch + 1) + ": the " + bad +
                 " not finite; the step is skipped");
  } else {
    trainee_->optimizer->step(at::scalar_tensor(finished.verdict.loss_weight, at::kFloat));
    if (finished.statistics.defined()) microbatches_->apply_statistics(finished.statistics);
    record(context, "committed");
  }
}

// The gradients are the sums over all ranks, the same bits on each: all conclude the same from them.
const char* Compute::not_finite(const Verdict& verdict) const {
  if (verdict.non_finite > 0) return "loss is";
  for (const auto& view : trainee_->views)
    if (view.grad.defined() && !gradient_is_finite(view.grad)) return "gradients are";
  return nullptr;
}

void Compute::report(Context& context, const Verdict& verdict, double lr) {
  if (!cast_.has_reporter) return;
  StepDone done;
  done.step = time_.batch;
  done.epoch = time_.epoch;
  done.loss = static_cast<float>(verdict.loss_sum / verdict.loss_weight);
  done.lr = lr;
  done.samples = verdict.samples;
  done.step_ms = milliseconds(context.now() - step_began_);
  if (done.step_ms > 0)
    done.samples_per_s = 1e3 * verdict.samples / done.step_ms;  // made-up time may stand still
  done.grad_accum = microbatches_->count();
  for (const double bytes : verdict.memory_peak)
    done.memory_peak_mb = std::max(done.memory_peak_mb, bytes / kBytesPerMb);
  done.progress = progress();
  context.send(cast_.reporter, done);
}

// Of max_duration; within an epoch it moves with the batches.
double Compute::progress() const {
  const double whole = elapsed(time_, max_duration_);
  if (max_duration_.unit() != TimeUnit::kEpoch) return whole;
  return whole + static_cast<double>(time_.batch_in_epoch) /
                     (static_cast<double>(options_.batches_per_epoch) * max_duration_.value());
}

void Compute::after_step(Context& context, const Timestamp& before, const Verdict& verdict,
                         bool last_of_epoch) {
  bool evaluation_due = eval_every_->at_batch_end(before, time_);
  bool checkpoint_due = checkpoint_every_->at_batch_end(before, time_) || verdict.checkpoint_now > 0;
  if (last_of_epoch) {
    time_.to_next_epoch();
    evaluation_due = evaluation_due || eval_every_->at_epoch_end(before, time_);
    checkpoint_due = checkpoint_due || checkpoint_every_->at_epoch_end(before, time_);
  }
  if (evaluation_due) observe(evaluate(context));
  const bool over = reached(time_, max_duration_);
  if (over || verdict.stop > 0) {
    finish(context, /*stopped=*/!over);
  } else if (checkpoint_due) {
    snapshot(context, /*last=*/false);
  }
}

void Compute::finish(Context& context, bool stopped) {
  done_ = true;
  if (!stopped && evaluated_at_ != time_.batch && eval_every_->fires()) evaluate(context);
  const bool save = saved_at_ != time_.batch;
  if (save) snapshot(context, /*last=*/true);
  if (!stopped && cast_.has_reporter) write_text(context);
  wait_for_copy(context);
  record(context, kDone);
  context.send(cast_.supervisor, TrainingDone{stopped, save});
}

void Compute::write_text(Context& context) try {
  record(context, kWritesText);
  const std::string text = trainee_->model->closing_text(options_.seed);
  if (!text.empty()) context.send(cast_.reporter, TextSample{text});
} catch (const c10::Error& error) {
  log_.warning("no sample of text: " + one_line(error));
}

NamedValues Compute::evaluate(Context& context) {
  if (!cast_.has_eval) return {};
  evaluated_at_ = time_.batch;
  const int64_t batches = options_.eval_batches;
  auto next = context.request<BatchReady>(cast_.eval_loader, LoadBatch{{0, 0}});
  const auto fetch = [&](int64_t index) {
    record(context, "evaluation", index);
    BatchReady ready = next.wait();
    if (index + 1 < batches) next = context.request<BatchReady>(cast_.eval_loader, LoadBatch{{0, index + 1}});
    return std::move(ready.batch);
  };
  const auto sum = [&](const at::Tensor& values) { context.ask<Summed>(cast_.sync, SumDoubles{values}); };
  NamedValues metrics;
  must_fit("evaluation after step " + std::to_string(time_.batch),
           [&] { metrics = tutti::evaluate(*trainee_->model, batches, fetch, sum); });
  if (cast_.has_reporter) context.send(cast_.reporter, EvalDone{time_.batch, time_.epoch, metrics});
  return metrics;
}

// Not what the evaluation at the end finds where none is due: a run that goes on from there later comes to
// the same as one that was not interrupted.
void Compute::observe(const NamedValues& metrics) {
  if (!rate_.observe(metrics)) return;
  std::ostringstream text;
  text << "step " << time_.batch + 1 << ": no improvement for long; the learning rate is now "
       << rate_.at(time_);
  log_.info(text.str());
}

void Compute::snapshot(Context& context, bool last) {
  wait_for_copy(context);
  digest_weights();
  saved_at_ = time_.batch;
  Snapshot snapshot;
  snapshot.name = checkpoint_name(time_.epoch, time_.batch);
  snapshot.pieces = checkpoint_pieces(*trainee_, options_.world, options_.rank);
  snapshot.state = run_state().to_json();
  snapshot.last = last;
  copying_ = context.request<SnapshotCopied>(cast_.checkpointer, std::move(snapshot));
}

// The Checkpointer copies a snapshot once the one before it is out of the way.
void Compute::wait_for_copy(Context& context) {
  if (!copying_) return;
  const TimePoint from = context.now();
  if (!copying_.ready()) record(context, kWaitsForDisk);
  copying_.wait();
  copying_ = {};
  if (context.now() - from < kLongWait || told_of_disk_) return;
  told_of_disk_ = true;
  log_.warning("training waits for the disk: a checkpoint is due before the last one is written");
}

// This rank's rows: together the ranks look at everything.
void Compute::digest_weights() {
  if (!recorder_.digests()) return;
  TensorsDigest::Named own;
  for (auto& piece : checkpoint_pieces(*trainee_, options_.world, options_.rank))
    own.emplace_back(std::move(piece.name), std::move(piece.tensor));
  weights_digest_.take(time_.batch, own);
}

RunState Compute::run_state() const {
  RunState state;
  state.run_name = options_.recipe.at("run_name").text();
  state.seed = options_.seed;
  state.world = options_.world;
  state.step = time_.batch;
  state.epoch = time_.epoch;
  state.batch_in_epoch = time_.batch_in_epoch;
  state.sample = time_.sample;
  state.token = time_.token;
  state.sample_in_epoch = time_.sample_in_epoch;
  state.token_in_epoch = time_.token_in_epoch;
  state.global_batch = options_.global_batch;
  state.data_digest = options_.data_digest;
  state.seconds = time_.total_wct;
  state.accumulation = accumulation_->state();
  state.plateau = rate_.state();
  state.recipe = options_.recipe_text;
  return state;
}

void Compute::record(Context& context, const char* what, int64_t detail) {
  recorder_.record({context.now(), "compute", what, time_.batch, detail});
}

}  // namespace tutti

#include "actors/train_step.h"

#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>

#include <bit>

#include "runtime/error.h"
#include "tensors/finite.h"
#include "tensors/meter.h"
#include "tensors/torch_error.h"

namespace tutti {
namespace {

constexpr const char* kFailedAllocation = "failed allocation";  // of an attempt; 0 = none

int64_t bucket_bytes(const Setting& recipe) {
  return static_cast<int64_t>(recipe.at("collectives").at("bucket_mb").number() * (int64_t{1} << 20));
}

template <class Tensors, class TensorOf>
double bytes_of(const Tensors& tensors, TensorOf tensor_of) {
  double bytes = 0;
  for (const auto& one : tensors) bytes += static_cast<double>(tensor_of(one).nbytes());
  return bytes;
}

}  // namespace

void must_fit(const std::string& what, const std::function<void()>& work) try {
  work();
} catch (const c10::OutOfMemoryError& error) {
  throw OperatingError(
      what + ": out of memory, and it cannot be done in smaller parts; --resume auto goes on from the " +
      "last checkpoint, if there is one: " + one_line(error));
}

TrainStep::TrainStep(State& state, Engine& engine, Options options, const Cast& cast, Log& log,
                     Recorder& recorder)
    : state_(state),
      engine_(engine),
      options_(std::move(options)),
      cast_(cast),
      log_(log),
      recorder_(recorder),
      accumulation_(options_.recipe.at("train"), options_.device_batch) {}

TrainStep::~TrainStep() {
  Meter::set_budget(options_.memory_slot, 0);
  Meter::charge(options_.memory_slot, -charged_bytes_);
}

void TrainStep::set_up(Context& context) {
  if (state_.world > 1) {
    const auto full = [this, &context](int bucket) {
      record(context, "bucket full", bucket);
      context.send(cast_.sync, ReduceBucket{bucket});
    };
    buckets_ = std::make_unique<GradientBuckets>(state_.parameters, bucket_bytes(options_.recipe), full);
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
  const int count = accumulation_.count(state_.timestamp.batch);
  microbatches_ =
      std::make_unique<Microbatches>(state_, engine_, buckets_.get(), count, options_.memory_slot);
  microbatches_->set_size(accumulation_.microbatch_size());
  send_plan(context);
}

void TrainStep::send_plan(Context& context) {
  plan_.statistics = microbatches_->statistics_size();
  plan_.step = state_.timestamp.batch;
  context.send(cast_.sync, SetPlan(plan_));
}

Verdict TrainStep::run(Context& context, const BatchReady& ready, double lr, const Hooks& hooks) {
  Meter::reset_peak(options_.memory_slot);
  use_accumulation(context);
  Attempt done = attempt(context, ready.batch, hooks);
  while (done.all.verdict.out_of_memory > 0) {
    hooks.void_attempt();
    done.all = {};  // what was gathered is void too
    make_room(context, ready, done.mine);
    done = attempt(context, ready.batch, hooks);
  }
  state_.optimizer->set_lr(lr);
  must_fit("step " + std::to_string(state_.timestamp.batch + 1) + ", its update", [&] {
    hooks.before_update();
    commit(context, done.all);
  });
  microbatches_->end_step();
  return done.all.verdict;
}

TrainStep::Attempt TrainStep::attempt(Context& context, const Batch& batch, const Hooks& hooks) {
  const auto mark = [&](const char* what, int64_t microbatch) { record(context, what, microbatch); };
  Attempt done;
  if (const auto ordinal = recorder_.foretold(kFailedAllocation))
    fail_as_recorded(static_cast<int64_t>(*ordinal));
  done.mine = microbatches_->run(batch, mark);
  recorder_.answer(kFailedAllocation,
                   done.mine.shortage ? static_cast<double>(done.mine.shortage->ordinal) : 0.0);
  if (done.mine.shortage)
    record(context, "out of memory at allocation", done.mine.shortage->ordinal);
  else
    record(context, "backward done");
  if (!done.mine.shortage && recorder_.digests())
    recorder_.digest({"compute/loss", state_.timestamp.batch, std::bit_cast<uint64_t>(done.mine.loss_sum)});
  Verdict mine = verdict_of(done.mine);
  hooks.vote(mine);
  done.all = context.ask<StepFinished>(cast_.sync, FinishStep{mine, done.mine.statistics});
  return done;
}

// In a replay memory runs out where it once did, at the same allocation of the attempt, and nowhere else.
void TrainStep::fail_as_recorded(int64_t ordinal) {
  Meter::set_budget(options_.memory_slot, 0);
  Meter::fail_at(options_.memory_slot, ordinal > 0 ? std::vector{ordinal} : std::vector<int64_t>());
}

// The attempt was void on all ranks, whichever of them ran out of memory. They all come here, and to the
// same.
void TrainStep::make_room(Context& context, const BatchReady& ready, const MicrobatchResult& mine) {
  record(context, "void", microbatches_->count());
  if (mine.leftover_bytes > 0)
    log_.warning(step_text() + std::to_string(mine.leftover_bytes) +
                 " bytes of the void attempt are still held");
  const auto row = shortage_row(shortage(mine, ready.batch), state_.rank, state_.world);
  const auto all = shortages_of(context.ask<Summed>(cast_.sync, SumDoubles{row}).values);
  const std::string who = step_text() + shortage_text(all);
  const std::string held = "; what held it: " + what_held_memory(all);
  engine_.out_of_memory(who + held);
  const int64_t largest = (ready.global_samples + state_.world - 1) / state_.world;
  if (!accumulation_.out_of_memory(state_.timestamp, largest)) {
    const std::string why = accumulation_.automatic()
                                ? " with one sample at a time, and there is nothing smaller"
                                : "; grad_accum = \"auto\" would go on in smaller microbatches";
    throw OperatingError(who + why + held);
  }
  use_accumulation(context);
  log_.warning(who + "; grad_accum is now " + std::to_string(microbatches_->count()));
}

Shortage TrainStep::shortage(const MicrobatchResult& mine, const Batch& batch) const {
  if (!mine.shortage) return {};
  Shortage found;
  found.ranks = 1;
  found.asked = static_cast<double>(mine.shortage->asked_bytes);
  found.used = static_cast<double>(mine.shortage->used_bytes);
  found.budget = static_cast<double>(mine.shortage->budget_bytes);
  found.parameters = bytes_of(state_.views, [](const ParamView& view) { return view.tensor; });
  found.gradients = buckets_ ? bytes_of(plan_.buckets, [](const at::Tensor& bucket) { return bucket; })
                             : static_cast<double>(mine.gradient_bytes);
  found.optimizer = bytes_of(state_.optimizer->state(), [](const OptimizerState& one) { return one.tensor; });
  found.batch = bytes_of(batch.leaves(), [](const auto& leaf) { return leaf.second; });
  return found;
}

void TrainStep::use_accumulation(Context& context) {
  const int count = accumulation_.count(state_.timestamp.batch);
  if (count == microbatches_->count()) return;
  microbatches_->set_count(count);
  send_plan(context);
}

void TrainStep::grow_back() {
  if (accumulation_.committed(state_.timestamp))
    log_.info(step_text() + "memory has sufficed for long; grad_accum is now " +
              std::to_string(accumulation_.count(state_.timestamp.batch)));
}

Verdict TrainStep::verdict_of(const MicrobatchResult& result) const {
  Verdict verdict;
  verdict.out_of_memory = result.shortage ? 1 : 0;
  verdict.non_finite = result.finite ? 0 : 1;
  verdict.samples = static_cast<double>(result.samples);
  verdict.tokens = static_cast<double>(result.tokens);
  verdict.flops = result.flops;
  verdict.loss_sum = result.loss_sum;
  verdict.loss_weight = result.loss_weight;
  verdict.metrics = result.metrics;
  verdict.memory_peak = {static_cast<double>(Meter::peak_bytes(options_.memory_slot))};
  return verdict;
}

void TrainStep::commit(Context& context, const StepFinished& finished) {
  for (std::size_t p = 0; p < state_.views.size(); ++p)
    state_.views[p].grad = buckets_ ? buckets_->gradients()[p] : state_.views[p].tensor.grad();
  state_.grad_scale = finished.verdict.loss_weight;
  state_.train_loss = finished.verdict.loss_sum / finished.verdict.loss_weight;
  state_.flops = finished.verdict.flops;
  microbatches_->apply_metrics(finished.verdict.metrics);
  engine_.run_event(Event::kAfterTrainBatch);
  if (const char* bad = not_finite(finished.verdict)) {
    log_.warning(step_text() + "the " + bad + " not finite; the step is skipped");
    return;
  }
  state_.optimizer->step(at::scalar_tensor(state_.grad_scale, at::kFloat));
  if (finished.statistics.defined()) microbatches_->apply_statistics(finished.statistics);
  record(context, "committed");
}

// The gradients are the sums over all ranks, the same bits on each: all conclude the same from them.
const char* TrainStep::not_finite(const Verdict& verdict) const {
  if (verdict.non_finite > 0) return "loss is";
  for (const auto& view : state_.views)
    if (view.grad.defined() && !gradient_is_finite(view.grad)) return "gradients are";
  return nullptr;
}

std::string TrainStep::step_text() const {
  return "step " + std::to_string(state_.timestamp.batch + 1) + ": ";
}

void TrainStep::record(Context& context, const char* what, int64_t detail) {
  recorder_.record({context.now(), "compute", what, state_.timestamp.batch, detail});
}

}  // namespace tutti

#include "actors/compute/train_step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>

#include <bit>
#include <map>
#include <utility>

#include "data/portions.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "sharding/activation_checkpointing.h"
#include "tensors/memory/memory_attempt.h"
#include "tensors/memory/meter.h"
#include "tensors/memory/out_of_memory.h"

namespace tutti {
namespace {

std::string update_text(const State& state) {
  return "step " + std::to_string(state.timestamp.batch + 1) + ", its update";
}

}  // namespace

TrainStep::TrainStep(const Parts& parts)
    : with_(parts),
      state_(parts.state),
      memory_(parts.job, parts.log, parts.state),
      loss_scale_(parts.job.settings.precision, parts.state.topology.data_world) {}

void TrainStep::set_up(Context& context) {
  const RunSettings& settings = with_.job.settings;
  context_ = &context;
  if (state_.topology.world > 1)
    exchange_.emplace(state_, ExchangeOptions{settings.collectives.bucket_bytes(), settings.sharding},
                      make_sync_client(context, state_, with_.actors, with_.recorder));
  else
    exchange_.emplace(state_, loss_scale_.scales());
  checkpointed_ = checkpoint_activations(*state_.model, settings.sharding);
  memory_.begin();
  memory_.ledger().add(HeldFor::kParameters,
                       [this] { return bytes_of(kept_, [](const at::Tensor& tensor) { return tensor; }); });
  memory_.ledger().add(HeldFor::kGradients, [this] { return exchange_->gradients().bucket_bytes(); });
  grad_scale_ = at::empty({}, state_.device.options());
  with_.engine.plan_reductions();
  surgeries_ = state_.surgeries;
  passes_.emplace(state_, with_.engine, *exchange_, memory_.plan(),
                  [this](TraceKind kind, int64_t portion) { record(kind, portion); });
  if (settings.train.cuda_graphs && (state_.device.is_cpu() || state_.topology.world > 1))
    with_.log.warning("train.cuda_graphs has no effect: it is for one rank with a GPU");
  else if (settings.train.cuda_graphs)
    passes_->use_graphs(with_.log);
  use_plan();
}

// The number of portions, and so the collectives of the step.
void TrainStep::use_plan() {
  const PortionPlan plan = memory_.plan();
  if (plan.count != passes_->plan().count && !memory_.accumulation().automatic())
    TUTTI_PROBE("accumulation: the recipe sets another number at this step");
  if (plan != passes_->plan()) passes_->set_plan(plan);
  const int64_t row_forwards = state_.model->compares_step() ? plan.count : 0;
  exchange_->plan({with_.engine.forwards() * state_.topology.data_parts + row_forwards, plan.count,
                   passes_->statistics_size(), passes_->sums()});
}

// Thrown, through closures, if the step must not be committed.
struct TrainStep::StepAborted {
  bool out_of_memory = false;  // the step is retried; else it is skipped
};

// The current step, for closures that ask for extra passes.
class TrainStep::StepClosure final : public Closure {
 public:
  explicit StepClosure(TrainStep& step) : step_(step) {}
  double pass(const Closure::Move& move) override { return step_.extra_pass(move); }
  void step() override { step_.update({}); }

 private:
  TrainStep& step_;
};

// Restores the current weights at the end of the scope.
class TrainStep::KeptWeights {
 public:
  explicit KeptWeights(TrainStep& step) : step_(step) {
    const at::NoGradGuard no_grad;
    const auto& views = step_.state_.views;
    if (step_.kept_.empty())
      for (const auto& view : views) step_.kept_.push_back(at::empty_like(view.tensor));
    for (std::size_t p = 0; p < views.size(); ++p) step_.kept_[p].copy_(views[p].tensor);
  }
  ~KeptWeights() {
    const at::NoGradGuard no_grad;
    for (std::size_t p = 0; p < step_.kept_.size(); ++p) step_.state_.views[p].tensor.copy_(step_.kept_[p]);
  }
  KeptWeights(const KeptWeights&) = delete;

 private:
  TrainStep& step_;
};

// Restores the results of the step before in State if this step is aborted. AFTER_TRAIN_BATCH shows the
// results of this step, which may still be aborted then.
class TrainStep::StepBefore {
 public:
  explicit StepBefore(State& state)
      : state_(state),
        metrics_(state.metric_values),
        loss_(state.train_loss),
        flops_(state.flops),
        lr_(state.optimizer->lr()) {}
  ~StepBefore() {
    if (trained_) return;
    state_.metric_values.swap(metrics_);
    restore_numbers();
  }
  StepBefore(const StepBefore&) = delete;
  void restore() {
    state_.metric_values = metrics_;
    restore_numbers();
  }
  void keep_new() { trained_ = true; }

 private:
  void restore_numbers() {
    state_.train_loss = loss_;
    state_.flops = flops_;
    state_.optimizer->set_lr(lr_);
  }

  State& state_;
  std::map<std::string, double> metrics_;
  const double loss_, flops_, lr_;
  bool trained_ = false;
};

// A model that uses all ranks is run as often by each.
void TrainStep::require_alike(int64_t global_samples) const {
  const int world = state_.topology.data_world;
  if (world == 1 || !state_.model->uses_all_ranks()) return;
  const auto portions = [&](int64_t samples) {
    return largest_part(samples, passes_->plan().portion_size(samples));
  };
  const int64_t fewest = global_samples / world;
  if (fewest > 0 && portions(fewest) == portions(largest_part(global_samples, world))) return;
  throw UserError("the model computes with the samples of all ranks, and a batch of " +
                  std::to_string(global_samples) + " does not give each of " + std::to_string(world) +
                  " ranks as many microbatches; data.train.drop_last = true leaves out short batches");
}

void TrainStep::begin(const BatchReady& ready) {
  if (state_.surgeries != surgeries_)
    throw UserError(step_text(state_) +
                    "the parameters changed after FIT_START; algorithms may exchange them at INIT, or until "
                    "AFTER_LOAD");
  if (state_.closure_step && state_.offloads_parameters && !state_.device.is_cpu())
    throw UserError(
        "sharding.offload: an algorithm changes parameters on the device, where they are not with "
        "\"parameters\"");
  Meter::reset_peak(state_.device.memory_slot);
  use_plan();
  require_alike(ready.global_samples);
  if (ready.global_samples < state_.global_batch) TUTTI_PROBE("step: a short last batch");
  if (ready.global_samples < state_.topology.data_world) TUTTI_PROBE("step: fewer samples than ranks");
  if (ready.batch.samples() == 0) TUTTI_PROBE("step: a rank without samples");
  if (!loss_scale_.scales()) return;
  if (ready.batch.samples() == 0) TUTTI_PROBE("loss scale: of a rank without samples");
  state_.loss_scale = loss_scale_.begin_step([&] {  // before the first step alone
    const double mine = ready.batch.samples() > 0 ? passes_->loss_weight_of(ready.batch) : 0.0;
    return exchange_->sum(at::full({1}, mine, at::kDouble)).item<double>();
  });
}

Verdict TrainStep::run(const BatchReady& ready, double lr) {
  StepBefore before(state_);
  begin(ready);
  with_.step_log.begin_attempt();
  const int64_t skipped = skips_.total;
  int aborted = 0;
  for (; !attempt(ready, lr); ++aborted) {
    with_.step_log.abort_attempt();
    before.restore();
    sum_ = {};
    passes_->free_step();
    record(TraceKind::kAbortedAttempt, passes_->plan().count);
    if (pass_->leftover_bytes > 0) record(TraceKind::kStillHeld, pass_->leftover_bytes);
    memory_.shrink(*pass_, ready, *exchange_, with_.engine);
    use_plan();
  }
  if (aborted == 1) TUTTI_PROBE("verdict: the second attempt of a step fits");
  if (aborted > 1) TUTTI_PROBE("verdict: the third attempt of a step, or a later attempt, fits");
  if (aborted > 0 && skips_.total > skipped) TUTTI_PROBE("verdict: a retried step is skipped");
  with_.step_log.keep_attempt();
  passes_->free_step();
  before.keep_new();
  return std::exchange(sum_, {}).verdict;
}

// False if all ranks abort the attempt.
bool TrainStep::attempt(const BatchReady& ready, double lr) {
  const RankTopology& place = state_.topology;
  passes_->begin_attempt(ready.copy.batch,
                         place.has_grains ? parts_of_rank(ready.global_samples, place)
                                          : std::vector<Portion>{{.first = ready.first_sample,
                                                                  .samples = ready.batch.samples()}},
                         ready.batch);
  if (!pass()) return false;
  state_.optimizer->set_lr(lr);
  bool fits = true;
  guard_memory(update_text(state_), [&] {
    with_.snapshots.wait_for_copy(*context_);
    fits = commit();
  });
  return fits;
}

// Forward, backward and the facts of all ranks; the views have their gradients. False if all ranks abort the
// attempt.
bool TrainStep::pass(const Closure::Move& move) {
  MemoryAttempt recorded(with_.recorder, state_.device.memory_slot);
  Pass& mine = *(pass_ = &passes_->run(move));
  mine.failed_allocation = recorded.end(mine.failed_allocation);
  mine.verdict.out_of_memory = mine.failed_allocation ? 1 : 0;
  if (mine.failed_allocation)
    record(TraceKind::kOutOfMemory, mine.failed_allocation->ordinal);
  else
    record(TraceKind::kBackwardDone);
  if (!state_.device.runs_ahead()) complete_pass();
  guard_memory(update_text(state_), [&] { facts_ = exchange_->facts(mine); });
  if (facts_.out_of_memory == 0) return true;
  if (state_.device.runs_ahead()) complete_pass();
  exchange_->verdict(mine);
  return false;
}

// The numbers that this rank adds to the verdict, which a device may still compute. Training time is rank
// 0's, so that all ranks end at the same step.
void TrainStep::complete_pass() {
  Verdict& mine = pass_->verdict;
  if (!pass_->failed_allocation) passes_->read_numbers();
  if (!pass_->failed_allocation && with_.recorder.digests())
    with_.recorder.digest({"compute/loss", state_.timestamp.batch, std::bit_cast<uint64_t>(mine.loss_sum)});
  mine.memory_peak = {static_cast<double>(Meter::peak_bytes(state_.device.memory_slot))};
  if (state_.topology.rank == 0)
    mine.seconds =
        with_.recorder.input(RecordedInput::kTrainingSeconds, with_.times.seconds_trained(context_->now()));
  mine.stop = stop_requested_ ? 1 : 0;
}

// Waits for the numbers of the last pass, over all ranks, and shows them to listeners. Throws StepAborted if
// the gradients cannot be used.
void TrainStep::take_results() {
  if (state_.device.runs_ahead()) complete_pass();
  add_up(exchange_->verdict(*pass_));
  const Verdict& last = sum_.last;
  const bool counts = last.loss_weight > 0;
  state_.grad_scale = (counts ? last.loss_weight : 1.0) * state_.loss_scale;
  if (counts) state_.train_loss = sum_.verdict.loss_sum / sum_.verdict.loss_weight;
  state_.flops = sum_.verdict.flops;
  if (sum_.passes == 1 || state_.composer) passes_->use_sums(sum_.verdict.sums, sum_.passes == 1);
  with_.engine.run_event(Event::kAfterTrainBatch);
  if (!counts || last.non_finite > 0 || last.overflow > 0) throw StepAborted();
}

// The step's loss and counts are those of its first pass.
void TrainStep::add_up(PassResult all) {
  const Verdict first = std::exchange(sum_.verdict, sum_.last = all.verdict);
  if (sum_.passes++ > 0) {
    sum_.verdict.samples = first.samples;
    sum_.verdict.tokens = first.tokens;
    sum_.verdict.loss_sum = first.loss_sum;
    sum_.verdict.loss_weight = first.loss_weight;
    sum_.verdict.flops += first.flops;
    sum_.verdict.sums = first.sums;
    if (state_.composer)  // its metrics are those of all passes together
      for (auto i = static_cast<std::size_t>(with_.engine.reductions()); i < first.sums.size(); ++i)
        sum_.verdict.sums[i] += sum_.last.sums[i];
  }
  if (all.statistics.defined()) sum_.statistics.push_back(std::move(all.statistics));
}

// False if an extra pass aborts the attempt; then nothing has changed.
bool TrainStep::commit() try {
  if (updates_first()) {
    sum_.launched_update = facts_.loss_weight > 0;
    state_.grad_scale = facts_.loss_weight * state_.loss_scale;
    if (sum_.launched_update) update(facts_.skip);
    take_results();
  } else {
    take_results();
    StepClosure closure(*this);
    if (state_.closure_step)
      state_.closure_step(closure);
    else
      state_.optimizer->step(closure);
  }
  if (state_.offloads_parameters) state_.optimizer->wait_for_host();
  loss_scale_.end_step(sum_.last.loss_weight, /*overflowed=*/false);
  for (const at::Tensor& pass_statistics : sum_.statistics) passes_->apply_statistics(pass_statistics);
  skips_.in_a_row = 0;
  record(TraceKind::kCommitted);
  return true;
} catch (const StepAborted& step) {
  if (!step.out_of_memory) skip();
  return !step.out_of_memory;
}

// On a device the update need not wait for the numbers, if no listener or closure looks at them before: its
// kernels do nothing where facts_.skip is 1. Engine::acts also counts callbacks, destinations and reductions.
bool TrainStep::updates_first() const {
  if (state_.topology.has_grains) return false;  // the sum of weights has the order of grains in the verdict
  return state_.device.runs_ahead() && !state_.closure_step && state_.optimizer->skips_on_device() &&
         !with_.engine.acts(Event::kAfterTrainBatch);
}

void TrainStep::update(const at::Tensor& skip) {
  state_.optimizer->step(grad_scale_.fill_(state_.grad_scale), skip);
}

double TrainStep::extra_pass(const Closure::Move& move) {
  record(TraceKind::kExtraPass, sum_.passes);
  const KeptWeights kept(*this);  // AFTER_TRAIN_BATCH sees the weights of the gradients
  if (!pass(move)) {
    TUTTI_PROBE("verdict: memory ran out in an extra pass");
    throw StepAborted{/*out_of_memory=*/true};
  }
  take_results();
  return sum_.last.loss_sum / sum_.last.loss_weight;
}

// A loss scale that is too large is no reason for a warning: the right scale is found this way.
void TrainStep::skip() {
  const Verdict& last = sum_.last;
  record(TraceKind::kSkipped);
  ++skips_.total;
  ++skips_.in_a_row;
  if (skips_.in_a_row > 1) TUTTI_PROBE("verdict: two steps in a row are skipped");
  if (last.stop > 0) TUTTI_PROBE("verdict: the last step before a stop is skipped");
  if (passes_->plan().count > 1) TUTTI_PROBE("verdict: a step of several microbatches is skipped");
  if (last.loss_weight == 0)
    return with_.log.warning(step_text(state_) + "nothing in the batch counts; the step is skipped");
  // An optimizer on the host has read the flag itself.
  if (sum_.launched_update && !state_.device.is_cpu()) state_.optimizer->take_back();
  loss_scale_.end_step(last.loss_weight, /*overflowed=*/true);
  if (!loss_scale_.scales()) {
    const char* bad = last.non_finite > 0 ? "loss is" : "gradients are";
    return with_.log.warning(step_text(state_) + "the " + bad + " not finite; the step is skipped");
  }
  TUTTI_PROBE("verdict: a gradient overflowed by the loss scale");
  with_.log.info(step_text(state_) + "a gradient overflowed; the step is skipped and the loss scale is now " +
                 loss_scale_.text());
}

void TrainStep::record(TraceKind kind, int64_t detail) {
  with_.recorder.record({context_->now(), kind, state_.timestamp.batch, detail});
}

}  // namespace tutti

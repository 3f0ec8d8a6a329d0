#include "actors/compute/train_step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <bit>
#include <map>
#include <sstream>
#include <utility>

#include "data/dataset.h"
#include "runtime/probe/probe.h"
#include "sharding/activation_checkpointing.h"
#include "tensors/finite.h"
#include "tensors/memory/memory_attempt.h"
#include "tensors/memory/meter.h"

namespace tutti {
namespace {

template <class Tensors, class TensorOf>
double bytes_of(const Tensors& tensors, TensorOf tensor_of) {
  double bytes = 0;
  for (const auto& entry : tensors) bytes += static_cast<double>(tensor_of(entry).nbytes());
  return bytes;
}

void probe_lack_of_memory(const std::vector<OutOfMemoryReport>& all) {
  const auto lacking =
      std::ranges::count_if(all, [](const OutOfMemoryReport& report) { return report.ranks > 0; });
  if (all.size() == 1) TUTTI_PROBE("verdict: memory ran out on the only rank");
  if (lacking == 1 && all.size() > 1) TUTTI_PROBE("verdict: memory ran out on one rank of several");
  if (lacking == 2 && all.size() > 2) TUTTI_PROBE("verdict: memory ran out on two ranks of several");
  if (lacking > 1 && lacking == std::ssize(all)) TUTTI_PROBE("verdict: memory ran out on all ranks");
}

}  // namespace

TrainStep::TrainStep(const Parts& parts)
    : with_(parts),
      state_(parts.state),
      log_(parts.log),
      recorder_(parts.recorder),
      accumulation_(parts.job.settings.train.accumulation,
                    largest_part(parts.job.global_batch, parts.job.data_world())) {
  const Precision& precision = parts.job.settings.precision;
  if (precision.scales_loss()) scaler_.emplace(precision.loss_scaling);
}

TrainStep::~TrainStep() { Meter::set_budget(state_.device.memory_slot, 0); }

void TrainStep::set_up(Context& context) {
  const RunSettings& settings = with_.job.settings;
  context_ = &context;
  if (state_.topology.world > 1)
    exchange_.emplace(state_, ExchangeOptions{settings.collectives.bucket_bytes(), settings.sharding},
                      make_sync_client(context, state_, with_.actors, recorder_));
  else
    exchange_.emplace(state_, scaler_.has_value());
  checkpointed_ = checkpoint_activations(*state_.model, settings.sharding);
  Meter::set_budget(state_.device.memory_slot, settings.device.memory_budget(state_.topology.rank));
  if (const std::string limit = Meter::limit(); !limit.empty()) log_.info("memory is limited: " + limit);
  grad_scale_ = at::empty({}, state_.device.options());
  with_.engine.plan_reductions();
  surgeries_ = state_.surgeries;
  microbatches_.emplace(state_, with_.engine, *exchange_, accumulation_.count(state_.timestamp.batch),
                        [this](TraceKind kind, int64_t microbatch) { record(kind, microbatch); });
  microbatches_->set_size(accumulation_.microbatch_size());
  if (settings.train.cuda_graphs) use_graphs();
  plan();
}

void TrainStep::use_graphs() {
  if (state_.device.is_cpu() || state_.topology.world > 1)
    log_.warning("train.cuda_graphs has no effect: it is for one rank with a GPU");
  else
    microbatches_->use_graphs(log_);
}

void TrainStep::plan() {
  const int64_t row_forwards = state_.model->compares_step() ? microbatches_->count() : 0;
  exchange_->plan({with_.engine.forwards() + row_forwards, microbatches_->count(),
                   microbatches_->statistics_size(), microbatches_->sums()});
}

// Thrown, through closures, if the step must not be committed.
struct TrainStep::StepAborted {
  bool out_of_memory = false;  // the step is retried; else it is skipped
};

// The current step, for closures that ask for extra passes.
class TrainStep::Passes final : public Closure {
 public:
  explicit Passes(TrainStep& step) : step_(step) {}
  double pass(const Closure::Move& move) override { return step_.extra_pass(move); }
  void step() override { step_.state_.optimizer->step(step_.grad_scale_.fill_(step_.state_.grad_scale)); }

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
  const int64_t fewest = global_samples / world;
  if (fewest > 0 &&
      microbatches_->parts_of(fewest) == microbatches_->parts_of(largest_part(global_samples, world)))
    return;
  throw UserError("the model computes with the samples of all ranks, and a batch of " +
                  std::to_string(global_samples) + " does not give each of " + std::to_string(world) +
                  " ranks as many microbatches; data.train.drop_last = true leaves out short batches");
}

Verdict TrainStep::run(const BatchReady& ready, double lr) {
  if (state_.surgeries != surgeries_)
    throw UserError(step_text() +
                    "the parameters changed after FIT_START; algorithms may exchange them at INIT, or until "
                    "AFTER_LOAD");
  if (state_.closure_step && state_.offloads_parameters && !state_.device.is_cpu())
    throw UserError(
        "sharding.offload: an algorithm changes parameters on the device, where they are not with "
        "\"parameters\"");
  StepBefore before(state_);
  Meter::reset_peak(state_.device.memory_slot);
  use_accumulation();
  require_alike(ready.global_samples);
  if (ready.global_samples < state_.global_batch) TUTTI_PROBE("step: a short last batch");
  if (ready.global_samples < state_.topology.data_world) TUTTI_PROBE("step: fewer samples than ranks");
  if (ready.batch.samples() == 0) TUTTI_PROBE("step: a rank without samples");
  scale_losses(ready.batch);
  with_.step_log.begin_attempt();
  const int64_t skipped = skipped_;
  int aborted = 0;
  while (!attempt(ready, lr)) {
    with_.step_log.abort_attempt();
    before.restore();
    sum_ = {};
    microbatches_->end_step();
    shrink_microbatches(ready);
    ++aborted;
  }
  if (aborted == 1) TUTTI_PROBE("verdict: the second attempt of a step fits");
  if (aborted > 1) TUTTI_PROBE("verdict: the third attempt of a step, or a later attempt, fits");
  if (aborted > 0 && skipped_ > skipped) TUTTI_PROBE("verdict: a retried step is skipped");
  with_.step_log.keep_attempt();
  microbatches_->end_step();
  before.keep_new();
  return std::exchange(sum_, {}).verdict;
}

// False if all ranks abort the attempt.
bool TrainStep::attempt(const BatchReady& ready, double lr) {
  microbatches_->begin_attempt(ready.copy.batch, ready.first_sample, ready.batch);
  if (!pass()) return false;
  state_.optimizer->set_lr(lr);
  bool fits = true;
  guard_memory("step " + std::to_string(state_.timestamp.batch + 1) + ", its update", [&] {
    with_.snapshots.wait_for_copy(*context_);
    fits = commit();
  });
  return fits;
}

// Forward, backward and their verdict, which an unseen update does not wait for. False if all ranks abort the
// attempt.
bool TrainStep::pass(const Closure::Move& move) {
  MemoryAttempt attempt(recorder_, state_.device.memory_slot);
  MicrobatchResult& mine = *(mine_ = &microbatches_->run(move));
  mine.failed_allocation = attempt.end(mine.failed_allocation);
  mine.verdict.out_of_memory = mine.failed_allocation ? 1 : 0;
  if (mine.failed_allocation)
    record(TraceKind::kOutOfMemory, mine.failed_allocation->ordinal);
  else
    record(TraceKind::kBackwardDone);
  const bool fits = !state_.device.runs_ahead() || launch_check();
  unseen_ = fits && updates_unseen();
  return unseen_ || agree();
}

// On a device: what is reduced goes to the views, and the check of losses and gradients is launched. False if
// all ranks abort the attempt.
bool TrainStep::launch_check() {
  facts_ = exchange_->facts(mine_->verdict);
  if (facts_.out_of_memory > 0) return false;
  exchange_->take_gradients(facts_.unused);
  LateNumbers& numbers = microbatches_->numbers();
  found_inf_ = exchange_->check(microbatches_->losses(), numbers, [this] { mine_->verdict.overflow = 1; });
  numbers.add(found_inf_, [this](std::span<const double> flag) { device_skips_ = flag[0] > 0; });
  numbers.launch();
  return true;
}

// The verdict on the last pass. False if all ranks abort the attempt.
bool TrainStep::agree() {
  MicrobatchResult& mine = *mine_;
  if (!mine.failed_allocation) microbatches_->read_numbers();
  if (!mine.failed_allocation && recorder_.digests())
    recorder_.digest(
        {"compute/loss", state_.timestamp.batch, std::bit_cast<uint64_t>(mine.verdict.loss_sum)});
  vote(mine.verdict);
  PassResult all = exchange_->agree(mine.verdict, mine.statistics);
  if (all.verdict.out_of_memory > 0) return false;
  add_up(std::move(all));
  return true;
}

// Training time is rank 0's, so that all ranks end at the same step.
void TrainStep::vote(Verdict& mine) const {
  mine.memory_peak = {static_cast<double>(Meter::peak_bytes(state_.device.memory_slot))};
  if (state_.topology.rank == 0)
    mine.seconds =
        recorder_.input(RecordedInput::kTrainingSeconds, with_.times.seconds_trained(context_->now()));
  mine.stop = stop_requested_ ? 1 : 0;
}

// The step's loss and counts are those of its first pass.
void TrainStep::add_up(PassResult all) {
  const Verdict first = std::exchange(sum_.verdict, last_ = all.verdict);
  if (sum_.passes++ > 0) {
    sum_.verdict.samples = first.samples;
    sum_.verdict.tokens = first.tokens;
    sum_.verdict.loss_sum = first.loss_sum;
    sum_.verdict.loss_weight = first.loss_weight;
    sum_.verdict.flops += first.flops;
    sum_.verdict.sums = first.sums;
    if (state_.composer)  // its metrics are those of all passes together
      for (auto i = static_cast<std::size_t>(with_.engine.reductions()); i < first.sums.size(); ++i)
        sum_.verdict.sums[i] += last_.sums[i];
  }
  if (all.statistics.defined()) sum_.statistics.push_back(std::move(all.statistics));
}

// After an aborted attempt. All ranks come to the same decision, whichever of them ran out of memory.
void TrainStep::shrink_microbatches(const BatchReady& ready) {
  record(TraceKind::kAbortedAttempt, microbatches_->count());
  Meter::empty_device_cache(state_.device.memory_slot);
  if (mine_->leftover_bytes > 0) {
    record(TraceKind::kStillHeld, mine_->leftover_bytes);
    log_.warning(step_text() + std::to_string(mine_->leftover_bytes) +
                 " bytes of the aborted step are still held");
  }
  const auto row =
      report_row(memory_report(*mine_, ready.batch), state_.topology.rank, state_.topology.world);
  const auto all = reports_of(exchange_->sum(row));
  probe_lack_of_memory(all);
  const std::string who = step_text() + out_of_memory_text(all);
  const std::string held = "; what held it: " + what_held_memory(all);
  with_.engine.out_of_memory(who + held);
  const int64_t largest = largest_part(ready.global_samples, state_.topology.data_world);
  if (!accumulation_.out_of_memory(state_.timestamp, largest)) {
    if (accumulation_.automatic())
      TUTTI_PROBE("verdict: memory ran out with one sample at a time");
    else
      TUTTI_PROBE("verdict: memory ran out with a set number of microbatches");
    const std::string why = accumulation_.automatic()
                                ? " with one sample at a time, and there is nothing smaller"
                                : "; grad_accum = \"auto\" would continue in smaller microbatches";
    throw AgreedOutOfMemory(EndKind::kOutOfMemoryInStep, who + why + held);
  }
  use_accumulation();
  log_.warning(who + "; grad_accum is now " + std::to_string(microbatches_->count()));
}

OutOfMemoryReport TrainStep::memory_report(const MicrobatchResult& mine, const Batch& batch) const {
  if (!mine.failed_allocation) return {};
  OutOfMemoryReport report;
  report.ranks = 1;
  report.asked = static_cast<double>(mine.failed_allocation->asked_bytes);
  report.used = static_cast<double>(mine.failed_allocation->used_bytes);
  report.budget = static_cast<double>(mine.failed_allocation->budget_bytes);
  report.words = mine.failed_allocation->words;
  report.parameters = bytes_of(state_.views, [](const ParamView& view) { return view.tensor; }) +
                      bytes_of(kept_, [](const at::Tensor& tensor) { return tensor; });
  report.gradients = exchange_->gradients().bucket_bytes();
  if (exchange_->gradients().owns_gradients()) report.gradients += static_cast<double>(mine.gradient_bytes);
  if (state_.device.is_cpu() || !state_.offloads_optimizer)
    report.optimizer =
        bytes_of(state_.optimizer->state(), [](const OptimizerState& one) { return one.tensor; });
  report.batch = bytes_of(batch.leaves(), [](const auto& leaf) { return leaf.second; });
  report.copies = static_cast<double>(copies_bytes_);
  return report;
}

void TrainStep::use_accumulation() {
  const int count = accumulation_.count(state_.timestamp.batch);
  if (count != microbatches_->count()) {
    if (!accumulation_.automatic()) TUTTI_PROBE("accumulation: the recipe sets another number at this step");
    microbatches_->set_count(count);
  }
  plan();
}

void TrainStep::grow_back() {
  if (accumulation_.committed(state_.timestamp))
    log_.info(step_text() + "memory has sufficed for long; grad_accum is now " +
              std::to_string(accumulation_.count(state_.timestamp.batch)));
}

// False if an extra pass aborts the attempt; then nothing has changed.
bool TrainStep::commit() try {
  if (unseen_) {
    update_unseen();
  } else {
    take_gradients();
    Passes passes(*this);
    if (state_.closure_step)
      state_.closure_step(passes);
    else
      state_.optimizer->step(passes);
  }
  if (state_.offloads_parameters) state_.optimizer->wait_for_host();
  update_scale(/*overflowed=*/false);
  for (const at::Tensor& pass_statistics : sum_.statistics) microbatches_->apply_statistics(pass_statistics);
  skipped_in_a_row_ = 0;
  record(TraceKind::kCommitted);
  return true;
} catch (const StepAborted& step) {
  if (!step.out_of_memory) skip();
  return !step.out_of_memory;
}

double TrainStep::extra_pass(const Closure::Move& move) {
  record(TraceKind::kExtraPass, sum_.passes);
  const KeptWeights kept(*this);  // AFTER_TRAIN_BATCH sees the weights of the gradients
  if (!pass(move)) {
    TUTTI_PROBE("verdict: memory ran out in an extra pass");
    throw StepAborted{/*out_of_memory=*/true};
  }
  take_gradients();
  return last_.loss_sum / last_.loss_weight;
}

// Without listeners between verdict and update, or closures, which look at the results before the update.
bool TrainStep::updates_unseen() const {
  return state_.device.runs_ahead() && !state_.closure_step && state_.optimizer->skips_on_device() &&
         !with_.engine.acts(Event::kAfterTrainBatch);
}

// The update is launched, then the host waits for the numbers that it goes by on the device.
void TrainStep::update_unseen() {
  const bool counts = facts_.loss_weight > 0;
  if (counts) {
    set_grad_scale(facts_.loss_weight);
    state_.optimizer->step(grad_scale_.fill_(state_.grad_scale), found_inf_);
  }
  TUTTI_ASSERT(agree(), "memory ran out after the ranks had agreed that it had not");
  TUTTI_ASSERT(device_skips_ == (last_.non_finite > 0 || last_.overflow > 0),
               "the device and the host disagree on whether the step counts");
  if (counts && device_skips_ && !state_.device.is_cpu()) state_.optimizer->take_back();
  take_results();
}

// Gives the views the reduced gradients of the last pass. Throws StepAborted if they cannot be used.
void TrainStep::take_gradients() {
  if (!state_.device.runs_ahead()) exchange_->take_gradients(last_.unused);
  take_results();
}

void TrainStep::set_grad_scale(double loss_weight) {
  state_.grad_scale = (loss_weight > 0 ? loss_weight : 1.0) * state_.loss_scale;
}

// Of the last pass. Throws StepAborted if its gradients cannot be used.
void TrainStep::take_results() {
  const bool counts = last_.loss_weight > 0;
  set_grad_scale(last_.loss_weight);
  if (counts) state_.train_loss = sum_.verdict.loss_sum / sum_.verdict.loss_weight;
  state_.flops = sum_.verdict.flops;
  if (sum_.passes == 1 || state_.composer) microbatches_->use_sums(sum_.verdict.sums, sum_.passes == 1);
  with_.engine.run_event(Event::kAfterTrainBatch);
  if (!counts || last_.non_finite > 0 || last_.overflow > 0) throw StepAborted();
}

// A loss scale that is too large is no reason for a warning: the right scale is found this way.
void TrainStep::skip() {
  record(TraceKind::kSkipped);
  ++skipped_;
  ++skipped_in_a_row_;
  if (skipped_in_a_row_ > 1) TUTTI_PROBE("verdict: two steps in a row are skipped");
  if (last_.stop > 0) TUTTI_PROBE("verdict: the last step before a stop is skipped");
  if (microbatches_->count() > 1) TUTTI_PROBE("verdict: a step of several microbatches is skipped");
  if (last_.loss_weight == 0)
    return log_.warning(step_text() + "nothing in the batch counts; the step is skipped");
  update_scale(/*overflowed=*/true);
  if (!scaler_) {
    const char* bad = last_.non_finite > 0 ? "loss is" : "gradients are";
    return log_.warning(step_text() + "the " + bad + " not finite; the step is skipped");
  }
  TUTTI_PROBE("verdict: a gradient overflowed by the loss scale");
  std::ostringstream text;
  text << step_text() << "a gradient overflowed; the step is skipped and the loss scale is now "
       << scaler_->scale();
  log_.info(text.str());
}

void TrainStep::update_scale(bool overflowed) {
  if (!scaler_) return;
  scaler_->set_usual_weight(last_.loss_weight / state_.topology.data_world);
  scaler_->update(overflowed);
}

// Before the first step ranks sum the weights of their losses, for the first loss scale.
void TrainStep::scale_losses(const Batch& batch) {
  if (!scaler_) return;
  if (scaler_->usual_weight() == 0) {
    const bool any = batch.samples() > 0;
    const double mine = any ? microbatches_->loss_weight_of(batch) : 0.0;
    const at::Tensor sum = at::full({1}, mine, at::kDouble);
    scaler_->set_usual_weight(exchange_->sum(sum).item<double>() / state_.topology.data_world);
  }
  state_.loss_scale = scaler_->loss_scale();
  if (batch.samples() == 0) TUTTI_PROBE("loss scale: of a rank without samples");
}

GradScalerState TrainStep::grad_scaler() const { return scaler_ ? scaler_->state() : GradScalerState(); }

void TrainStep::restore_grad_scaler(const GradScalerState& state) {
  if (scaler_) scaler_->restore(state);
}

std::string TrainStep::step_text() const {
  return "step " + std::to_string(state_.timestamp.batch + 1) + ": ";
}

void TrainStep::record(TraceKind kind, int64_t detail) {
  recorder_.record({context_->now(), kind, state_.timestamp.batch, detail});
}

}  // namespace tutti

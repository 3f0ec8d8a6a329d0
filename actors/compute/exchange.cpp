#include "actors/compute/exchange.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "data/dataset.h"
#include "runtime/probe/probe.h"
#include "tensors/finite.h"

namespace tutti {
namespace {

// In the order in which the model calls them for a sample of the training data.
std::vector<Unit> units_of(const State& state, const ShardingSettings& settings) {
  if (!state.dataset) return find_units(*state.model, settings);
  return find_units(*state.model, settings, [&] {
    const int64_t first = 0;
    state.try_forward(state.dataset->get({&first, 1}, {state.seed}));
  });
}

}  // namespace

Exchange::Exchange(State& state, bool scaled)
    : state_(state), gradients_(make_local_gradients(state, scaled)) {}

// Parameters move before gradients set hooks on them.
Exchange::Exchange(State& state, const ExchangeOptions& options, std::unique_ptr<SyncClient> sync)
    : state_(state),
      replicas_(options.sharding.strategy == ShardingStrategy::kHybrid),
      sync_(std::move(sync)),
      trained_(trained_of(state)) {
  using enum ShardingStrategy;
  const ShardingStrategy strategy = options.sharding.strategy;
  const bool shards = state.topology.share.pieces > 1;
  std::vector<Unit> units;
  if (shards || strategy != kNone) units = units_of(state, options.sharding);
  if (!units.empty()) unsharding_ = make_unsharding(*sync_, state, units, options.sharding);
  gradients_ = strategy == kNone || strategy == kOptimizer
                   ? make_bucket_sync(*sync_, state, options.bucket_bytes, shards)
                   : make_unit_sync(*sync_, state, units, replicas_);
  if (unsharding_) unsharding_->notify(*gradients_);
}

void Exchange::plan(const PassShape& shape) {
  if (!sync_) return;
  auto trained = trained_of(state_);
  const bool changed = trained != trained_;
  if (!changed && shape_ == shape) return;
  if (changed && shape_) TUTTI_PROBE("sharding: other parameters are trained than in the step before");
  trained_ = std::move(trained);
  shape_ = shape;
  if (changed) gradients_->follow_frozen(trained_);
  verdict_ = at::zeros({Verdict::numbers(state_.topology.world, shape.sums)}, at::kDouble);
  if (state_.device.runs_ahead()) {
    facts_ = at::zeros({3}, at::kDouble);
    flag_ = at::zeros({1}, state_.device.options());
  }
  const bool has_statistics = shape.statistics > 0;
  statistics_ = has_statistics ? at::zeros({shape.statistics}) : at::Tensor();
  gathered_ = has_statistics ? at::empty({state_.topology.world, shape.statistics}) : at::Tensor();
  set_training_plan();
}

void Exchange::set_training_plan() {
  has_other_plan_ = false;
  std::vector<PlanEntry> entries;
  if (unsharding_) entries = unsharding_->plan(shape_->forwards, shape_->microbatches, trained_);
  for (PlanEntry& entry : gradients_->plan(static_cast<int>(entries.size()), shape_->microbatches))
    entries.push_back(std::move(entry));
  if (state_.device.runs_ahead()) plan_check(entries);
  if (statistics_.defined())
    entries.push_back({.kind = CollectiveKind::kAllGather,
                       .whole = gathered_.view({-1}),
                       .part = statistics_,
                       .label = "statistics"});
  entries.push_back({.whole = verdict_, .label = "verdict", .ends = TraceKind::kVerdict});
  sync_->set_plan(std::move(entries));
}

// Replicas of a share have other gradients than the ranks that share.
void Exchange::plan_check(std::vector<PlanEntry>& entries) {
  flag_at_ = static_cast<int>(entries.size());
  entries.push_back(
      {.group = GroupRole::kReductions, .whole = flag_, .place = PassPlace::last(), .label = "check"});
  if (replicas_)
    entries.push_back({.group = GroupRole::kReplicas,
                       .whole = flag_,
                       .place = PassPlace::last(),
                       .after = flag_at_,
                       .label = "check of all replicas"});
  facts_at_ = static_cast<int>(entries.size());
  entries.push_back({.whole = facts_, .label = "facts"});
}

void Exchange::unshard() {
  if (!unsharding_) return;
  if (has_other_plan_) {
    TUTTI_PROBE("sharding: a step follows passes with another plan");
    set_training_plan();
  }
  unsharding_->begin_pass();
}

void Exchange::end_forwards() {
  if (!unsharding_) return;
  if (has_other_plan_) set_training_plan();
  unsharding_->end_forwards();
}

void Exchange::begin_microbatch(int64_t microbatch, bool last) {
  if (unsharding_) unsharding_->begin_microbatch(microbatch);
  gradients_->begin_microbatch(microbatch, last);
}

void Exchange::end_microbatch() {
  if (unsharding_) unsharding_->end_microbatch();
  gradients_->end_microbatch();
}

void Exchange::abandon_pass() {
  gradients_->abandon_pass();
  if (unsharding_) unsharding_->end_pass();
}

// A rank that has run out of memory waits for nobody here: others may wait for parameters that it serves in
// `agree`.
PassFacts Exchange::facts(const Verdict& mine) {
  if (!sync_) return {mine.out_of_memory, mine.loss_weight, 0};
  double* const numbers = facts_.data_ptr<double>();
  numbers[0] = mine.out_of_memory;
  numbers[1] = mine.loss_weight;
  numbers[2] = static_cast<double>(gradients_->unused());
  if (mine.out_of_memory > 0) return {.out_of_memory = mine.out_of_memory};
  sync_->run(facts_at_);
  sync_->wait(facts_at_);
  if (unsharding_) unsharding_->end_pass();
  gradients_->wait();
  return {numbers[0], numbers[1], numbers[2]};
}

at::Tensor Exchange::check(const std::vector<at::Tensor>& losses, LateNumbers& numbers,
                           std::function<void()> overflow) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const ParamView& view : state_.views)
    if (view.grad.defined() && view.grad.numel() > 0) gradients.push_back(view.grad);
  const at::Tensor overflow_flag = any_not_finite(gradients, state_.device);
  numbers.add(overflow_flag, [overflow = std::move(overflow)](std::span<const double> flag) {
    if (flag[0] > 0) overflow();
  });
  const at::Tensor mine = overflow_flag.add(any_not_finite(losses, state_.device));
  if (!sync_) return mine.clamp_max(1);
  flag_.copy_(mine);
  for (int entry = flag_at_; entry < facts_at_; ++entry) {
    sync_->run(entry);
    sync_->wait(entry);
  }
  return flag_[0].clamp_max(1);
}

// The sums of shards are known to their owners alone, so the verdict waits for them. Whoever runs out of
// memory has nothing to wait for.
PassResult Exchange::agree(Verdict mine, const at::Tensor& statistics) {
  const bool on_device = state_.device.runs_ahead();  // see facts() and check()
  if ((unsharding_ || !sync_) && mine.out_of_memory == 0 && !on_device) {
    if (unsharding_) unsharding_->end_pass();
    if (!gradients_->wait()) {
      if (sync_) TUTTI_PROBE("sharding: gradients of a rank's own share are not finite");
      mine.overflow = 1;
    }
  }
  if (!sync_) return {std::move(mine), statistics.defined() ? statistics.clone().unsqueeze(0) : statistics};
  mine.unused = static_cast<double>(gradients_->unused());
  verdict_.copy_(mine.encode(state_.topology.rank, state_.topology.world));
  if (statistics_.defined()) statistics_.copy_(statistics);
  const bool finite = sync_->finish_pass();
  PassResult all{Verdict::decode(verdict_, state_.topology.world), {}};
  if (!finite && !unsharding_ && !on_device) all.verdict.overflow = state_.topology.world;
  if (gathered_.defined()) all.statistics = gathered_.clone();
  return all;
}

// A parameter without a gradient on any rank has zeros in its bucket. Its gradient stays undefined, as on a
// single rank.
void Exchange::take_gradients(double unused) {
  const at::Tensor used_by = unused > 0 ? sum(gradients_->used()) : at::Tensor();
  if (used_by.defined()) TUTTI_PROBE("gradients: a parameter has none on some rank");
  const auto gradients = gradients_->gradients();
  for (std::size_t p = 0; p < state_.views.size(); ++p) {
    const bool is_unused = used_by.defined() && used_by.const_data_ptr<double>()[p] == 0;
    const bool trained = sync_ ? trained_[p] : state_.views[p].tensor.requires_grad();
    if (is_unused && trained) TUTTI_PROBE("gradients: a trained parameter has none on any rank");
    state_.views[p].grad = is_unused || !trained ? at::Tensor() : gradients[p];
  }
}

// Sync has another plan until the next pass.
void Exchange::unshard_model(bool computes, int64_t forwards) {
  if (!unsharding_) return;
  has_other_plan_ = true;
  sync_->set_plan(unsharding_->plan_of_forwards(forwards));
  if (computes)
    unsharding_->begin_pass();
  else
    unsharding_->serve_pass();
}

void Exchange::end_held_forwards() {
  if (unsharding_) unsharding_->end_forwards();
}

void Exchange::reshard_model() {
  if (!unsharding_) return;
  unsharding_->end_pass();
  sync_->finish_pass();
}

void Exchange::visit_parameters(const RankServices::Visit& visit) {
  has_other_plan_ = true;
  sync_->set_plan(unsharding_->plan_of_all());
  try {
    if (visit) unsharding_->visit_all(visit);
  } catch (...) {
    reshard_model();
    throw;
  }
  reshard_model();
}

}  // namespace tutti

#include "actors/compute/exchange.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <utility>

#include "data/dataset.h"
#include "runtime/error.h"
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

// In the verdict; 0: batches are cut by ranks.
int64_t grains_of(const State& state) { return state.topology.has_grains ? state.topology.data_world : 0; }

// On a device: 0 if all losses and gradients of the rank are finite. The pass learns later whether gradients
// are not. Overwrites the losses.
at::Tensor bad_numbers(const State& state, Pass& pass) {
  std::vector<at::Tensor> gradients;
  for (const ParamView& view : state.views)
    if (view.grad.defined() && view.grad.numel() > 0) gradients.push_back(view.grad);
  const at::Tensor overflow = any_not_finite(gradients, state.device);
  pass.numbers.add(overflow, [&pass](std::span<const double> flag) {
    if (flag[0] > 0) pass.verdict.overflow = 1;
  });
  return overflow.add(any_not_finite(pass.losses, state.device));
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
  numbers_.verdict =
      at::zeros({Verdict::numbers(state_.topology.world, shape.sums, grains_of(state_))}, at::kDouble);
  if (state_.device.runs_ahead()) {
    numbers_.facts = at::zeros({3}, at::kDouble);
    numbers_.flag = at::zeros({1}, state_.device.options());
  }
  const bool has_statistics = shape.statistics > 0;
  numbers_.statistics = has_statistics ? at::zeros({shape.statistics}) : at::Tensor();
  numbers_.gathered = has_statistics ? at::empty({state_.topology.world, shape.statistics}) : at::Tensor();
  set_training_plan();
}

void Exchange::set_training_plan() {
  has_other_plan_ = false;
  std::vector<PlanEntry> entries;
  if (unsharding_) entries = unsharding_->plan(shape_->forwards, shape_->portions, trained_);
  for (PlanEntry& entry : gradients_->plan(static_cast<int>(entries.size()), shape_->portions))
    entries.push_back(std::move(entry));
  if (state_.device.runs_ahead()) plan_check(entries);
  if (numbers_.statistics.defined())
    entries.push_back({.kind = CollectiveKind::kAllGather,
                       .whole = numbers_.gathered.view({-1}),
                       .part = numbers_.statistics,
                       .label = "statistics"});
  entries.push_back({.whole = numbers_.verdict, .label = "verdict", .ends = TraceKind::kVerdict});
  sync_->set_plan(std::move(entries));
}

// Replicas of a share have other gradients than the ranks that share.
void Exchange::plan_check(std::vector<PlanEntry>& entries) {
  numbers_.flag_at = static_cast<int>(entries.size());
  entries.push_back({.group = GroupRole::kReductions,
                     .whole = numbers_.flag,
                     .place = PassPlace::last(),
                     .label = "check"});
  if (replicas_)
    entries.push_back({.group = GroupRole::kReplicas,
                       .whole = numbers_.flag,
                       .place = PassPlace::last(),
                       .after = numbers_.flag_at,
                       .label = "check of all replicas"});
  numbers_.facts_at = static_cast<int>(entries.size());
  entries.push_back({.whole = numbers_.facts, .label = "facts"});
}

void PassOrder::enter(std::initializer_list<Stage> from, Stage to) {
  TUTTI_ASSERT(std::ranges::count(from, stage_) > 0, "stage " + std::to_string(static_cast<int>(to)) +
                                                         " of a pass follows stage " +
                                                         std::to_string(static_cast<int>(stage_)));
  stage_ = to;
}

void Exchange::begin_pass() {
  order_.enter({PassOrder::kIdle}, PassOrder::kPass);
  gradients_->begin_pass();
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

void Exchange::begin_portion(const Portion& portion) {
  order_.enter({PassOrder::kPass}, PassOrder::kPortion);
  if (unsharding_) unsharding_->begin_portion(portion.index);
  gradients_->begin_portion(portion);
}

void Exchange::end_portion() {
  order_.enter({PassOrder::kPortion}, PassOrder::kPass);
  if (unsharding_) unsharding_->end_portion();
  gradients_->end_portion();
}

void Exchange::end_pass() {
  order_.enter({PassOrder::kPass}, PassOrder::kOver);
  gradients_->end_pass();
}

// Memory may have run out before begin_pass, or after end_pass.
void Exchange::abandon_pass() {
  order_.enter({PassOrder::kIdle, PassOrder::kPass, PassOrder::kPortion, PassOrder::kOver}, PassOrder::kOver);
  gradients_->abandon_pass();
  if (unsharding_) unsharding_->end_pass();
}

PassFacts Exchange::facts(Pass& mine) {
  order_.enter({PassOrder::kOver}, PassOrder::kFacts);
  if (state_.device.runs_ahead()) return device_facts(mine);
  result_ = agree(mine);
  const Verdict& all = result_->verdict;
  if (all.out_of_memory == 0) take_gradients(all.unused);
  return {all.out_of_memory, all.loss_weight, {}};
}

PassResult Exchange::verdict(Pass& mine) {
  order_.enter({PassOrder::kFacts}, PassOrder::kIdle);
  if (result_) return *std::exchange(result_, std::nullopt);
  PassResult all = agree(mine);
  TUTTI_ASSERT(all.verdict.out_of_memory > 0 ||
                   mine.skips_on_device == (all.verdict.non_finite > 0 || all.verdict.overflow > 0),
               "the device and the host disagree on whether the step counts");
  return all;
}

// A rank that has run out of memory waits for no facts of others: they may wait for parameters that it serves
// in `verdict`, which sums its facts. Else gradients are reduced for later work of this thread's stream.
PassFacts Exchange::device_facts(Pass& mine) {
  PassFacts all{mine.verdict.out_of_memory, mine.verdict.loss_weight, {}};
  double unused = 0;
  if (sync_) {
    double* const numbers = numbers_.facts.data_ptr<double>();
    numbers[0] = all.out_of_memory;
    numbers[1] = all.loss_weight;
    numbers[2] = static_cast<double>(gradients_->unused());
    if (all.out_of_memory > 0) return all;
    sync_->run(numbers_.facts_at);
    sync_->wait(numbers_.facts_at);
    if (unsharding_) unsharding_->end_pass();
    gradients_->wait();
    all = {numbers[0], numbers[1], {}};
    unused = numbers[2];
  }
  if (all.out_of_memory > 0) return all;
  take_gradients(unused);
  const at::NoGradGuard no_grad;
  all.skip = bad_numbers(state_, mine);
  if (sync_) {
    numbers_.flag.copy_(all.skip);
    for (int entry = numbers_.flag_at; entry < numbers_.facts_at; ++entry) {
      sync_->run(entry);
      sync_->wait(entry);
    }
    all.skip = numbers_.flag[0];
  }
  all.skip = all.skip.clamp_max(1);
  mine.numbers.add(all.skip, [&mine](std::span<const double> flag) { mine.skips_on_device = flag[0] > 0; });
  mine.numbers.launch();
  return all;
}

// The sums of shards are known to their owners alone, so the verdict waits for them. Whoever runs out of
// memory has nothing to wait for.
PassResult Exchange::agree(Pass& mine) {
  Verdict& verdict = mine.verdict;
  const bool on_device = state_.device.runs_ahead();  // see device_facts
  if ((unsharding_ || !sync_) && verdict.out_of_memory == 0 && !on_device) {
    if (unsharding_) unsharding_->end_pass();
    if (!gradients_->wait()) {
      if (sync_) TUTTI_PROBE("sharding: gradients of a rank's own share are not finite");
      verdict.overflow = 1;
    }
  }
  if (!sync_) {
    const at::Tensor statistics =
        mine.statistics.defined() ? mine.statistics.clone().unsqueeze(0) : at::Tensor();
    return {grains_of(state_) > 0 ? Verdict::decode(verdict.encode(0, 1), 1, grains_of(state_)) : verdict,
            statistics};
  }
  verdict.unused = static_cast<double>(gradients_->unused());
  numbers_.verdict.copy_(verdict.encode(state_.topology.rank, state_.topology.world));
  if (numbers_.statistics.defined()) numbers_.statistics.copy_(mine.statistics);
  const bool finite = sync_->finish_pass();
  PassResult all{Verdict::decode(numbers_.verdict, state_.topology.world, grains_of(state_)), {}};
  if (!finite && !unsharding_ && !on_device) all.verdict.overflow = state_.topology.world;
  if (numbers_.gathered.defined()) all.statistics = numbers_.gathered.clone();
  return all;
}

// A parameter without a gradient on any rank has zeros in its bucket. Its gradient stays undefined, as on a
// single rank. `unused`: of all ranks.
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
  sync_->set_plan(unsharding_->plan(forwards, /*portions=*/0, {}));
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

#include "actors/compute/sync_exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "actors/messages/messages.h"
#include "data/dataset.h"
#include "tensors/meter.h"

namespace tutti {
namespace {

std::vector<bool> trained_of(const State& state) {
  std::vector<bool> trained;
  for (const auto& one : state.parameters) trained.push_back(one.parameter->tensor.requires_grad());
  return trained;
}

}  // namespace

std::vector<Unit> units_of(const State& state, const ShardingSettings& settings) {
  if (!state.dataset) return find_units(*state.model, settings);
  return find_units(*state.model, settings, [&] {
    const int64_t first = 0;
    state.try_forward(state.dataset->get({&first, 1}, {state.seed}));
  });
}

SyncExchange::SyncExchange(Context& context, State& state, const RankActors& actors, Recorder& recorder)
    : context_(context),
      state_(state),
      actors_(actors),
      recorder_(recorder),
      sync_(actors.sync),
      trained_(trained_of(state)) {}

SyncExchange::~SyncExchange() { Meter::charge(state_.device.memory_slot, -charged_bytes_); }

void SyncExchange::shard(const std::vector<Unit>& units, Gathers::Options options) {
  frees_ = options.frees;
  const auto memory = [this](std::vector<int64_t> bytes) {
    return allocate(GroupRole::kGathers, std::move(bytes));
  };
  gathers_ =
      std::make_unique<Gathers>(context_, state_, units, std::move(options), actors_, recorder_, memory);
}

std::vector<at::Tensor> SyncExchange::allocate(GroupRole group, std::vector<int64_t> bytes) {
  auto memory = context_.ask<MemoryAllocated>(sync_, AllocateMemory{group, std::move(bytes)}).memory;
  int64_t charged = 0;
  for (const at::Tensor& one : memory)
    if (!Meter::counts(one)) charged += static_cast<int64_t>(one.nbytes());
  charged_bytes_ += charged;
  Meter::charge(state_.device.memory_slot, charged);
  return memory;
}

void SyncExchange::plan(Context&, const PassShape& shape) {
  auto trained = trained_of(state_);
  const bool changed = trained != trained_;
  if (!changed && shape_ == shape) return;
  trained_ = std::move(trained);
  if (changed) follow_frozen();
  shape_ = shape;
  verdict_ = at::zeros({Verdict::numbers(state_.topology.world, shape.sums)}, at::kDouble);
  const bool has_statistics = shape.statistics > 0;
  statistics_ = has_statistics ? at::zeros({shape.statistics}) : at::Tensor();
  gathered_ = has_statistics ? at::empty({state_.topology.world, shape.statistics}) : at::Tensor();
  set_training_plan();
}

void SyncExchange::set_training_plan() {
  has_other_plan_ = false;
  SetPlan plan;
  if (gathers_) plan.entries = gathers_->plan(shape_->forwards, shape_->microbatches, trained_);
  for (PlanEntry& one : reductions(static_cast<int>(plan.entries.size()), shape_->microbatches))
    plan.entries.push_back(std::move(one));
  if (statistics_.defined())
    plan.entries.push_back({.kind = CollectiveKind::kAllGather,
                            .whole = gathered_.view({-1}),
                            .part = statistics_,
                            .label = "statistics"});
  plan.entries.push_back({.whole = verdict_, .label = "verdict", .ends = TraceKind::kVerdict});
  context_.send(sync_, std::move(plan));
}

void SyncExchange::gather() {
  if (!gathers_) return;
  if (has_other_plan_) set_training_plan();
  gathers_->begin_pass();
}

void SyncExchange::begin_microbatch(int64_t microbatch, bool) {
  if (gathers_) gathers_->begin_microbatch(microbatch);
}

void SyncExchange::end_microbatch() {
  if (gathers_) gathers_->end_microbatch();
}

void SyncExchange::abandon_pass() {
  if (gathers_) gathers_->end_pass();
}

// The sums of shards are known to their owners alone, so the verdict waits for them. Whoever runs out of
// memory has nothing to wait for.
PassResult SyncExchange::agree(Context& context, Verdict mine, const at::Tensor& statistics) {
  if (gathers_ && mine.out_of_memory == 0) {
    gathers_->end_pass();
    if (!finish_reductions()) mine.overflow = 1;
  }
  mine.unused = static_cast<double>(unused());
  verdict_.copy_(mine.encode(state_.topology.rank, state_.topology.world));
  if (statistics_.defined()) statistics_.copy_(statistics);
  const bool finite = context.ask<PassDone>(sync_, FinishStep{state_.timestamp.batch}).finite;
  PassResult all{Verdict::decode(verdict_, state_.topology.world), {}};
  if (!finite && !gathers_) all.verdict.overflow = state_.topology.world;
  if (gathered_.defined()) all.statistics = gathered_.clone();
  return all;
}

// A parameter without a gradient on any rank has zeros in its bucket. Its gradient stays undefined, as on a
// single rank.
void SyncExchange::take_gradients(Context& context, const Verdict& all) {
  const at::Tensor used_by = all.unused > 0 ? sum(context, used()) : at::Tensor();
  const auto gradients = reduced();
  for (std::size_t p = 0; p < state_.views.size(); ++p) {
    const bool unused = used_by.defined() && used_by.const_data_ptr<double>()[p] == 0;
    state_.views[p].grad = unused || !trained_[p] ? at::Tensor() : gradients[p];
  }
}

at::Tensor SyncExchange::sum(Context& context, const at::Tensor& values) {
  return context.ask<Summed>(sync_, SumDoubles{values}).values;
}

// Sync has another plan until the next pass.
void SyncExchange::hold_model(Context&, bool wanted, int64_t forwards) {
  if (!gathers_) return;
  has_other_plan_ = true;
  context_.send(sync_, SetPlan{gathers_->plan_of_forwards(forwards)});
  if (wanted || !frees_)
    gathers_->begin_pass();
  else
    gathers_->serve_pass();
}

void SyncExchange::visit_parameters(Context& context, const RankServices::Visit& visit) {
  has_other_plan_ = true;
  context_.send(sync_, SetPlan{gathers_->plan_of_all()});
  try {
    if (visit) gathers_->visit_all(visit);
  } catch (...) {
    free_model(context);
    throw;
  }
  free_model(context);
}

void SyncExchange::free_model(Context& context) {
  if (!gathers_) return;
  gathers_->end_pass();
  context.ask<PassDone>(sync_, FinishStep{state_.timestamp.batch});
}

void SyncExchange::run(int entry) { context_.send(sync_, RunEntry{entry, state_.timestamp.batch}); }

bool SyncExchange::await(int entry) { return context_.ask<EntryDone>(sync_, AwaitEntry{entry}).finite; }

}  // namespace tutti

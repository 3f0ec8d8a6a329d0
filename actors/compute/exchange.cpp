#include "actors/compute/exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "actors/messages/messages.h"
#include "sharding/gradient_buckets.h"
#include "tensors/finite.h"
#include "tensors/meter.h"

namespace tutti {
namespace {

class SingleExchange final : public Exchange {
 public:
  SingleExchange(State& state, bool scaled) : state_(state), scaled_(scaled) {}

  void plan(Context&, int64_t, int64_t) override {}
  PassResult agree(Context&, Verdict mine, const at::Tensor& statistics) override {
    mine.overflow = overflows() ? 1 : 0;
    return {std::move(mine), statistics.defined() ? statistics.clone().unsqueeze(0) : statistics};
  }
  void take_gradients(Context&, const Verdict&) override {
    for (ParamView& view : state_.views)
      view.grad = view.tensor.requires_grad() ? view.tensor.grad() : at::Tensor();
  }
  bool owns_gradients() const override { return true; }
  at::Tensor sum(Context&, const at::Tensor& values) override { return values; }

 private:
  bool overflows() const {
    return std::ranges::any_of(state_.views, [this](const ParamView& view) {
      const at::Tensor& grad = view.tensor.grad();
      return grad.defined() && !(scaled_ ? all_finite(grad) : gradient_is_finite(grad));
    });
  }

  State& state_;
  bool scaled_;
};

// Sync checks that the sums of gradients are finite.
class SyncExchange final : public Exchange {
 public:
  SyncExchange(Context& context, State& state, int64_t bucket_bytes, const RankActors& actors,
               Recorder& recorder)
      : state_(state),
        sync_(actors.sync),
        recorder_(recorder),
        buckets_(
            state.parameters, bucket_bytes, [this, &context](int bucket) { full(context, bucket); },
            state.precision.reduce_dtype) {
    AllocateMemory wanted;
    for (const auto& bucket : buckets_.plan().buckets) wanted.bytes.push_back(bucket.bytes);
    memory_ = context.ask<MemoryAllocated>(sync_, std::move(wanted)).memory;
    buckets_.bind(memory_);
    for (const at::Tensor& one : memory_)
      if (!Meter::counts(one)) charged_bytes_ += static_cast<int64_t>(one.nbytes());
    find_live_buckets();
    Meter::charge(state_.memory_slot, charged_bytes_);
  }
  ~SyncExchange() override { Meter::charge(state_.memory_slot, -charged_bytes_); }

  void plan(Context& context, int64_t statistics, int64_t sums) override {
    verdict_ = at::zeros({Verdict::numbers(state_.world, sums)}, at::kDouble);
    statistics_ = statistics > 0 ? at::zeros({statistics}) : at::Tensor();
    gathered_ = statistics > 0 ? at::empty({state_.world, statistics}) : at::Tensor();
    send_plan(context);
  }

  void begin_step(Context& context) override {
    if (!buckets_.follow_frozen()) return;
    find_live_buckets();
    send_plan(context);
  }
  void begin_pass() override { buckets_.begin_step(); }
  void begin_last_microbatch() override { buckets_.begin_last_microbatch(); }
  void end_pass() override { buckets_.end_step(); }
  void abandon_pass() override { buckets_.abandon_step(); }

  PassResult agree(Context& context, Verdict mine, const at::Tensor& statistics) override {
    mine.unused = static_cast<double>(buckets_.unused());
    verdict_.copy_(mine.encode(state_.rank, state_.world));
    if (statistics_.defined()) statistics_.copy_(statistics);
    const bool finite = context.ask<PassDone>(sync_, FinishStep{state_.timestamp.batch}).finite;
    PassResult all{Verdict::decode(verdict_, state_.world), {}};
    if (!finite) all.verdict.overflow = state_.world;
    if (gathered_.defined()) all.statistics = gathered_.clone();
    return all;
  }

  // A parameter without a gradient on any rank has zeros in the buckets. Its gradient stays undefined, as on
  // a single rank.
  void take_gradients(Context& context, const Verdict& all) override {
    const at::Tensor used = all.unused > 0 ? sum(context, buckets_.used()) : at::Tensor();
    const auto reduced = buckets_.gradients();
    for (std::size_t p = 0; p < state_.views.size(); ++p) {
      ParamView& view = state_.views[p];
      const bool unused = used.defined() && used.const_data_ptr<double>()[p] == 0;
      view.grad = unused || !view.tensor.requires_grad() ? at::Tensor() : reduced[p];
    }
  }
  bool owns_gradients() const override { return buckets_.casts(); }

  at::Tensor sum(Context& context, const at::Tensor& values) override {
    return context.ask<Summed>(sync_, SumDoubles{values}).values;
  }

  double bucket_bytes() const override {
    double bytes = 0;
    for (const at::Tensor& bucket : memory_) bytes += static_cast<double>(bucket.nbytes());
    return bytes;
  }

 private:
  void find_live_buckets() {
    live_.clear();
    places_.clear();
    const auto parts = buckets_.parts();
    for (std::size_t b = 0; b < memory_.size(); ++b) {
      const auto place = std::ssize(live_);
      places_.push_back(static_cast<int>(place));
      const int64_t bytes = buckets_.live_bytes()[b];
      if (bytes == 0) continue;
      live_.push_back({.whole = memory_[b].narrow(0, 0, bytes).view(buckets_.plan().buckets[b].dtype),
                       .label = "bucket " + std::to_string(place),
                       .begins = TraceKind::kReduceBucket,
                       .number = place,
                       .parts = parts[b]});
    }
  }

  void send_plan(Context& context) const {
    SetPlan plan{live_};
    if (statistics_.defined())
      plan.entries.push_back({.kind = CollectiveKind::kAllGather,
                              .whole = gathered_.view({-1}),
                              .part = statistics_,
                              .label = "statistics"});
    plan.entries.push_back({.whole = verdict_, .label = "verdict", .ends = TraceKind::kVerdict});
    context.send(sync_, std::move(plan));
  }

  void full(Context& context, int bucket) {
    const int place = places_[static_cast<std::size_t>(bucket)];
    recorder_.record({context.now(), TraceKind::kBucketFull, state_.timestamp.batch, place});
    context.send(sync_, RunEntry{place, state_.timestamp.batch});
  }

  State& state_;
  ActorId sync_;
  Recorder& recorder_;
  GradientBuckets buckets_;
  std::vector<at::Tensor> memory_;  // of each bucket
  std::vector<int> places_;         // of each bucket in the plan, which leaves out those that are not reduced
  std::vector<PlanEntry> live_;     // of the buckets that are reduced
  at::Tensor verdict_, statistics_, gathered_;
  int64_t charged_bytes_ = 0;  // to the meter, for buckets outside of the meter's allocator
};

}  // namespace

std::unique_ptr<Exchange> make_single_exchange(State& state, bool scaled) {
  return std::make_unique<SingleExchange>(state, scaled);
}

std::unique_ptr<Exchange> make_exchange(Context& context, State& state, int64_t bucket_bytes,
                                        const RankActors& actors, Recorder& recorder) {
  return std::make_unique<SyncExchange>(context, state, bucket_bytes, actors, recorder);
}

}  // namespace tutti

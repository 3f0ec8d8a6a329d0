#include "actors/compute/bucket_exchange.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "actors/compute/sync_exchange.h"
#include "sharding/gradient_buckets.h"
#include "sharding/shard_plan.h"

namespace tutti {
namespace {

class BucketExchange final : public SyncExchange {
 public:
  BucketExchange(Context& context, State& state, const ExchangeOptions& options, const RankActors& actors,
                 Recorder& recorder)
      : SyncExchange(context, state, actors, recorder) {
    if (state.topology.share.pieces > 1) shard(units_of(state, options.sharding), {.frees = false});
    buckets_.emplace(
        state.parameters, options.bucket_bytes, [this](int bucket) { full(bucket); },
        state.precision.reduce_dtype);
    std::vector<int64_t> bytes;
    for (const auto& bucket : buckets_->plan().buckets) bytes.push_back(bucket.bytes);
    memory_ = allocate(shards() ? GroupRole::kReductions : GroupRole::kWorld, std::move(bytes));
    buckets_->bind(memory_);
    find_live_buckets();
  }

  void begin_pass() override { buckets_->begin_step(); }
  void begin_microbatch(int64_t microbatch, bool last) override {
    SyncExchange::begin_microbatch(microbatch, last);
    if (last) buckets_->begin_last_microbatch();
  }
  void end_pass() override { buckets_->end_step(); }
  void abandon_pass() override {
    buckets_->abandon_step();
    SyncExchange::abandon_pass();
  }
  bool owns_gradients() const override { return buckets_->casts(); }
  double bucket_bytes() const override {
    double bytes = 0;
    for (const at::Tensor& bucket : memory_) bytes += static_cast<double>(bucket.nbytes());
    return bytes;
  }

 protected:
  void follow_frozen() override {
    buckets_->follow_frozen();
    find_live_buckets();
  }

  std::vector<PlanEntry> reductions(int first, int64_t) override {
    first_ = first;
    return live_;
  }

  bool finish_reductions() override {
    bool finite = true;
    for (int place = 0; place < static_cast<int>(live_.size()); ++place)
      finite = await(first_ + place) && finite;
    return finite;
  }

  std::vector<at::Tensor> reduced() override { return shards() ? reduced_share() : buckets_->gradients(); }
  int64_t unused() const override { return buckets_->unused(); }
  at::Tensor used() const override { return buckets_->used(); }

 private:
  void find_live_buckets() {
    live_.clear();
    places_.clear();
    rows_.clear();
    const auto names = buckets_->parts();
    for (std::size_t b = 0; b < memory_.size(); ++b) {
      const auto place = std::ssize(live_);
      places_.push_back(static_cast<int>(place));
      const int64_t bytes = buckets_->live_bytes()[b];
      if (bytes == 0) continue;
      const at::ScalarType dtype = buckets_->plan().buckets[b].dtype;
      PlanEntry& entry = live_.emplace_back(PlanEntry{.whole = memory_[b].narrow(0, 0, bytes).view(dtype),
                                                      .label = "bucket " + std::to_string(place),
                                                      .begins = TraceKind::kReduceBucket,
                                                      .number = place,
                                                      .parts = names[b]});
      if (shards()) scatter(b, entry);
    }
  }

  // The same sums, but of this rank's rows alone, where they lie in the bucket.
  void scatter(std::size_t b, PlanEntry& entry) {
    const Bucket bucket = with_only(buckets_->plan().buckets[b], trained());
    const auto all = tensors_of(state_);
    entry.kind = CollectiveKind::kReduceScatter;
    entry.group = GroupRole::kReductions;
    entry.cut = cut_by_rows(bucket, all, state_.topology.share.pieces);
    entry.part = entry.whole;
    const RowsOfRank& rows = rows_.emplace_back(bucket, all, state_.topology.share, RowsOfRank::In::kWhole);
    entry.parts = rows.parts(names_of(state_));
  }

  std::vector<at::Tensor> reduced_share() {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients(state_.parameters.size());
    for (std::size_t place = 0; place < live_.size(); ++place)
      rows_[place].take(live_[place].whole, gradients);
    return gradients;
  }

  void full(int bucket) {
    const int place = places_[static_cast<std::size_t>(bucket)];
    recorder_.record({context_.now(), TraceKind::kBucketFull, state_.timestamp.batch, place});
    run(first_ + place);
  }

  std::optional<GradientBuckets> buckets_;
  std::vector<at::Tensor> memory_;  // of each bucket
  std::vector<int> places_;         // of each bucket among those that are reduced
  std::vector<PlanEntry> live_;     // of the buckets that are reduced
  std::vector<RowsOfRank> rows_;    // of the same, if sharded
  int first_ = 0;                   // index of the first of them in the plan
};

}  // namespace

std::unique_ptr<Exchange> make_bucket_exchange(Context& context, State& state, const ExchangeOptions& options,
                                               const RankActors& actors, Recorder& recorder) {
  return std::make_unique<BucketExchange>(context, state, options, actors, recorder);
}

}  // namespace tutti

#include "actors/compute/gradient_sync.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/probe/probe.h"
#include "sharding/gradient_buckets.h"
#include "sharding/shard_plan.h"
#include "sharding/tree_sum.h"
#include "tensors/finite.h"

namespace tutti {
namespace {

class LocalGradients final : public GradientSync {
 public:
  LocalGradients(State& state, bool scaled)
      : state_(state), checks_all_(scaled || state.topology.has_grains) {
    if (state.topology.has_grains) grains_.emplace(state.views.size());
  }

  void begin_pass() override {
    if (grains_) grains_->clear();
  }
  void begin_portion(const Portion& portion) override { portion_ = portion; }
  void end_portion() override {
    if (!grains_) return;
    for (std::size_t p = 0; p < state_.views.size(); ++p) {
      at::Tensor& grad = state_.views[p].tensor.mutable_grad();
      grad = grains_->add(p, portion_.index, std::exchange(grad, at::Tensor()), portion_.last);
    }
  }
  void abandon_pass() override { begin_pass(); }

  bool wait() override {
    if (state_.device.runs_ahead()) return true;
    return std::ranges::all_of(state_.views, [this](const ParamView& view) {
      const at::Tensor& grad = view.tensor.grad();
      return !grad.defined() || (checks_all_ ? all_finite(grad) : gradient_is_finite(grad));
    });
  }
  std::vector<at::Tensor> gradients() override {
    std::vector<at::Tensor> gradients;
    for (const ParamView& view : state_.views) gradients.push_back(view.tensor.grad());
    return gradients;
  }
  bool owns_gradients() const override { return true; }
  double bytes_of_grains() const override { return grains_ ? grains_->bytes() : 0; }

 private:
  State& state_;
  const bool checks_all_;  // as several ranks do; else a part of each large gradient
  Portion portion_;
  std::optional<TreeSum> grains_;
};

class BucketSync final : public GradientSync {
 public:
  BucketSync(SyncClient& sync, State& state, int64_t bucket_bytes, bool shards)
      : sync_(sync),
        state_(state),
        shards_(shards),
        group_(shards || state.device.runs_ahead() ? GroupRole::kReductions : GroupRole::kWorld),
        buckets_(
            state.parameters, bucket_bytes, [this](int bucket) { full(bucket); },
            state.precision.reduce_dtype, state.topology.has_grains) {
    std::vector<int64_t> bytes;
    for (const auto& bucket : buckets_.plan().buckets) bytes.push_back(bucket.bytes);
    memory_ = sync.allocate(group_, std::move(bytes));
    buckets_.bind(memory_);
    find_live_buckets(trained_of(state));
  }

  void begin_pass() override { buckets_.begin_pass(); }
  void begin_portion(const Portion& portion) override { buckets_.begin_portion(portion.index, portion.last); }
  void end_portion() override { buckets_.end_portion(); }
  void end_pass() override { buckets_.end_pass(); }
  void abandon_pass() override { buckets_.abandon_pass(); }
  bool owns_gradients() const override { return buckets_.has_own_gradients(); }
  double bytes_of_grains() const override { return buckets_.bytes_of_grains(); }
  double bucket_bytes() const override {
    double bytes = 0;
    for (const at::Tensor& bucket : memory_) bytes += static_cast<double>(bucket.nbytes());
    return bytes;
  }

  void follow_frozen(const std::vector<bool>& trained) override {
    TUTTI_PROBE("bucket: parameters are frozen under way");
    buckets_.follow_frozen();
    find_live_buckets(trained);
  }
  std::vector<PlanEntry> plan(int first, int64_t) override {
    first_ = first;
    return live_;
  }
  bool wait() override {
    bool finite = true;
    for (int place = 0; place < static_cast<int>(live_.size()); ++place)
      finite = sync_.wait(first_ + place) && finite;
    return finite;
  }

  std::vector<at::Tensor> gradients() override { return shards_ ? reduced_share() : buckets_.gradients(); }
  int64_t unused() const override { return buckets_.unused(); }
  at::Tensor used() const override { return buckets_.used(); }

 private:
  void find_live_buckets(const std::vector<bool>& trained) {
    live_.clear();
    places_.clear();
    rows_.clear();
    const auto names = buckets_.parts();
    for (std::size_t b = 0; b < memory_.size(); ++b) {
      const auto place = std::ssize(live_);
      places_.push_back(static_cast<int>(place));
      const int64_t bytes = buckets_.live_bytes()[b];
      if (bytes == 0) {
        TUTTI_PROBE("bucket: all parameters of a bucket are frozen");
        continue;
      }
      const at::ScalarType dtype = buckets_.plan().buckets[b].dtype;
      PlanEntry& entry = live_.emplace_back(PlanEntry{.group = group_,
                                                      .whole = memory_[b].narrow(0, 0, bytes).view(dtype),
                                                      .label = "bucket " + std::to_string(place),
                                                      .begins = TraceKind::kReduceBucket,
                                                      .number = place,
                                                      .parts = names[b]});
      if (shards_) scatter(b, entry, trained);
    }
  }

  // The same sums, but of this rank's rows alone, where they lie in the bucket.
  void scatter(std::size_t b, PlanEntry& entry, const std::vector<bool>& trained) {
    const Bucket bucket = with_only(buckets_.plan().buckets[b], trained);
    const auto all = tensors_of(state_);
    entry.kind = CollectiveKind::kReduceScatter;
    entry.cut = cut_by_rows(bucket, all, state_.views, state_.topology.share.pieces);
    entry.part = entry.whole;
    if (entry.cut->part_size(state_.topology.share.index) == 0)
      TUTTI_PROBE("bucket: a rank has no row of a bucket");
    const RowsOfRank& rows =
        rows_.emplace_back(bucket, all, state_.views, state_.topology.share, RowsOfRank::In::kWhole);
    entry.parts = rows.parts(names_of(state_));
  }

  std::vector<at::Tensor> reduced_share() {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients(state_.parameters.size());
    for (std::size_t place = 0; place < live_.size(); ++place)
      rows_[place].take(live_[place].whole, gradients);
    return gradients;
  }

  // Sums of the model come in backward too, on the same group, where a plan has no place for them.
  bool waits_for_end() const { return group_ == GroupRole::kWorld && state_.model->uses_all_ranks(); }

  void full(int bucket) {
    const int place = places_[static_cast<std::size_t>(bucket)];
    sync_.record(TraceKind::kBucketFull, place);
    if (!waits_for_end()) sync_.run(first_ + place);
  }

  SyncClient& sync_;
  State& state_;
  const bool shards_;
  const GroupRole group_;
  GradientBuckets buckets_;
  std::vector<at::Tensor> memory_;  // of each bucket
  std::vector<int> places_;         // of each bucket among those that are reduced
  std::vector<PlanEntry> live_;     // of the buckets that are reduced
  std::vector<RowsOfRank> rows_;    // of the same, if sharded
  int first_ = 0;                   // index of the first of them in the plan
};

}  // namespace

std::unique_ptr<GradientSync> make_local_gradients(State& state, bool scaled) {
  return std::make_unique<LocalGradients>(state, scaled);
}

std::unique_ptr<GradientSync> make_bucket_sync(SyncClient& sync, State& state, int64_t bucket_bytes,
                                               bool shards) {
  return std::make_unique<BucketSync>(sync, state, bucket_bytes, shards);
}

std::vector<bool> trained_of(const State& state) {
  std::vector<bool> trained;
  for (const auto& named : state.parameters) trained.push_back(named.parameter->tensor.requires_grad());
  return trained;
}

}  // namespace tutti

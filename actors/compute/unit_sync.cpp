#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "actors/compute/gradient_sync.h"
#include "runtime/probe/probe.h"
#include "sharding/shard_plan.h"
#include "sharding/unit_gradients.h"
#include "tensors/finite.h"

namespace tutti {
namespace {

constexpr std::size_t kRootTurn = 2;  // of the root unit's memory; 0 and 1 are the others'
constexpr std::size_t kTurns = 3;

// Buckets of units alternate between two blocks of memory that other ranks read; the root unit's bucket has
// its own block.
//
// Gathers G and reductions R of units have one order on all ranks: ..., G(2), R(3), G(1), R(2), R(1). Before
// a rank waits for one of them, it has requested or serves all earlier ones, so ranks cannot deadlock.
class UnitSync final : public GradientSync, private UnitGradients::Owner {
 public:
  UnitSync(SyncClient& sync, State& state, const std::vector<Unit>& units, bool replicas)
      : sync_(sync),
        state_(state),
        replicas_(replicas),
        like_(like_views(state)),
        gradients_(state.parameters, like_, units, state.precision.reduce_dtype, *this) {
    for (const Unit& unit : units) unit_names_.push_back(unit.name);
    allocate_all();
    find_live_buckets(trained_of(state));
  }

  void begin_pass() override {
    gradients_.begin_step();
    finite_ = true;
  }
  void begin_microbatch(int64_t microbatch, bool) override {
    microbatch_ = microbatch;
    gradients_.begin_microbatch();
  }
  // A rank without samples in the microbatch takes part with zeros.
  void end_microbatch() override { gradients_.end_microbatch(); }
  void leave_after(std::size_t unit) override { gradients_.leave_after(unit); }
  void abandon_pass() override {
    if (std::ranges::any_of(under_way_, [](const auto& sum) { return sum.has_value(); }))
      TUTTI_PROBE("sharding: a pass is abandoned while sums of units are under way");
    gradients_.abandon_step();
    under_way_ = {};
  }
  bool owns_gradients() const override { return true; }
  double bucket_bytes() const override { return bucket_bytes_; }

  void follow_frozen(const std::vector<bool>& trained) override { find_live_buckets(trained); }
  std::vector<PlanEntry> plan(int first, int64_t microbatches) override {
    first_ = first;
    allocate_parts(microbatches);
    std::vector<PlanEntry> entries;
    std::array<int, kTurns> before;  // the last entry that uses the turn's memory
    before.fill(-1);
    for (int64_t m = 0; m < microbatches; ++m)
      for (const std::size_t b : live_) {
        int& last = before[buckets_[b].turn];
        entries.push_back(scatter(m, b));
        entries.back().after = std::exchange(last, first + static_cast<int>(entries.size()) - 1);
        if (!replicas_) continue;
        entries.push_back({.group = GroupRole::kReplicas,
                           .whole = entries.back().part,
                           .place = entries.back().place,
                           .after = last,
                           .label = entries.back().label + " of all replicas"});
        ++last;
      }
    return entries;
  }

  bool wait() override {
    for (auto& unit : under_way_) complete(unit);
    if (microbatch_ > 0 && !state_.device.runs_ahead())
      finite_ = finite_ &&
                std::ranges::all_of(live_, [this](std::size_t b) { return all_finite(buckets_[b].sums); });
    return finite_;
  }

  std::vector<at::Tensor> gradients() override {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients(like_.size());
    for (const std::size_t b : live_) buckets_[b].rows->take(buckets_[b].sums, gradients);
    return gradients;
  }
  int64_t unused() const override { return gradients_.unused(); }
  at::Tensor used() const override { return gradients_.used(); }

 private:
  // The place where a bucket is summed.
  struct Place {
    std::size_t turn = 0;
    bool direct = true;      // the first microbatch's sums are `sums`; else they are cast into them
    int64_t largest = 0;     // elements of the largest part, with all parameters
    at::Tensor memory = {};  // of the sums

    // Only of parameters that are trained now, if any.
    int index = 0;  // in live_
    CutPtr cut = {};
    std::optional<RowsOfRank> rows = {};  // in its part
    at::Tensor sums = {};                 // flat: this rank's part, over microbatches
    std::vector<DigestPart> names = {};   // of the bytes of the part
  };
  struct UnderWay {
    std::size_t bucket = 0;
    int64_t microbatch = 0;
  };

  // The whole parameters with the dtypes of their views, and without memory.
  static std::vector<at::Tensor> like_views(const State& state) {
    std::vector<at::Tensor> like;
    for (std::size_t p = 0; p < state.parameters.size(); ++p)
      like.push_back(stand_in(state.parameters[p].parameter->tensor, state.views[p].tensor.scalar_type()));
    return like;
  }

  CutPtr cut_of(const Bucket& bucket) const {
    return cut_by_rows(bucket, like_, state_.views, state_.topology.share.pieces);
  }
  int64_t part_size(const Place& place) const { return place.cut->part_size(state_.topology.share.index); }

  void allocate_all() {
    std::array<int64_t, kTurns> whole{};
    std::vector<int64_t> sums;
    for (std::size_t b = 0; b < gradients_.buckets().size(); ++b) {
      const Bucket& bucket = gradients_.buckets()[b];
      Place place{.turn = gradients_.unit_of(b) == 0 ? kRootTurn : b % kRootTurn,
                  .largest = cut_of(bucket)->largest_part()};
      place.direct = std::ranges::all_of(bucket.slots, [&](const BucketSlot& slot) {
        return like_[slot.parameter].scalar_type() == bucket.dtype;
      });
      whole[place.turn] = std::max(whole[place.turn], bucket.bytes);
      sums.push_back(place.largest * static_cast<int64_t>(c10::elementSize(sum_dtype(place, bucket))));
      buckets_.push_back(std::move(place));
    }
    memory_ = sync_.allocate(GroupRole::kReductions, {whole.begin(), whole.end()});
    const auto memory = allocate_for_replicas(sums);
    for (std::size_t b = 0; b < buckets_.size(); ++b) buckets_[b].memory = memory[b];
    count_bytes(memory_);
    count_bytes(memory);
  }

  // Frozen parameters have no place in a part.
  void find_live_buckets(const std::vector<bool>& trained) {
    live_.clear();
    const auto names = names_of(state_);
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const Bucket bucket = with_only(gradients_.buckets()[b], trained);
      if (bucket.slots.empty()) {
        TUTTI_PROBE("sharding: all parameters of a unit are frozen");
        continue;
      }
      Place& place = buckets_[b];
      place.index = static_cast<int>(live_.size());
      place.cut = cut_of(bucket);
      place.rows.emplace(bucket, like_, state_.views, state_.topology.share, RowsOfRank::In::kPart);
      place.names = place.rows->parts(names);
      if (part_size(place) == 0) TUTTI_PROBE("sharding: a rank has no row of a unit");
      if (!place.direct) TUTTI_PROBE("sharding: sums of a unit are cast");
      place.sums = place.memory.view(sum_dtype(place, bucket)).narrow(0, 0, part_size(place));
      live_.push_back(b);
    }
  }

  // Memory for sums that are not `sums` at once.
  void allocate_parts(int64_t microbatches) {
    if (!parts_.empty()) return;
    std::array<int64_t, kTurns> bytes{};
    bool needed = false;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const Place& place = buckets_[b];
      const int64_t part = place.largest * gradients_.buckets()[b].item();
      bytes[place.turn] = std::max(bytes[place.turn], part);
      needed = needed || microbatches > 1 || !place.direct;
    }
    if (needed) count_bytes(parts_ = allocate_for_replicas({bytes.begin(), bytes.end()}));
  }

  void count_bytes(const std::vector<at::Tensor>& memory) {
    for (const at::Tensor& tensor : memory) bucket_bytes_ += static_cast<double>(tensor.nbytes());
  }

  static at::ScalarType sum_dtype(const Place& place, const Bucket& bucket) {
    return place.direct ? bucket.dtype : at::kFloat;
  }

  // Memory for sums over replicas, which the replicas read.
  std::vector<at::Tensor> allocate_for_replicas(std::vector<int64_t> bytes) {
    if (replicas_) return sync_.allocate(GroupRole::kReplicas, std::move(bytes));
    std::vector<at::Tensor> memory;
    for (const int64_t size : bytes) memory.push_back(at::empty({size}, state_.device.options(at::kByte)));
    return memory;
  }

  bool into_sums(const Place& place, int64_t microbatch) const { return place.direct && microbatch == 0; }

  at::Tensor part_of(int64_t microbatch, std::size_t bucket) const {
    const Place& place = buckets_[bucket];
    if (into_sums(place, microbatch)) return place.sums;
    return parts_[place.turn].view(gradients_.buckets()[bucket].dtype).narrow(0, 0, part_size(place));
  }

  PlanEntry scatter(int64_t microbatch, std::size_t b) const {
    const Bucket& bucket = gradients_.buckets()[b];
    return {.kind = CollectiveKind::kReduceScatter,
            .group = GroupRole::kReductions,
            .whole = memory_[buckets_[b].turn].narrow(0, 0, bucket.bytes).view(bucket.dtype),
            .part = part_of(microbatch, b),
            .cut = buckets_[b].cut,
            .place = PassPlace::sum(microbatch, gradients_.unit_of(b), unit_names_.size()),
            .label = label_of(microbatch, b),
            .begins = TraceKind::kReduceBucket,
            .number = static_cast<int64_t>(b),
            .parts = buckets_[b].names};
  }

  std::string label_of(int64_t microbatch, std::size_t bucket) const {
    const std::string part = microbatch == 0 ? "" : " in microbatch " + std::to_string(microbatch);
    return "gradients of " + unit_names_[gradients_.unit_of(bucket)] + part;
  }

  int entry_of(int64_t microbatch, std::size_t bucket) const {
    const int64_t each = replicas_ ? 2 : 1;
    return first_ + static_cast<int>((microbatch * std::ssize(live_) + buckets_[bucket].index) * each);
  }

  // Memory that an earlier bucket of the same turn has left.
  at::Tensor memory_of(std::size_t bucket) override {
    const std::size_t turn = buckets_[bucket].turn;
    if (under_way_[turn] && under_way_[turn]->microbatch < microbatch_)
      TUTTI_PROBE("sharding: a sum of the microbatch before is still under way");
    complete(under_way_[turn]);
    return memory_[turn];
  }

  void full(std::size_t bucket) override {
    sync_.record(TraceKind::kBucketFull, static_cast<int64_t>(bucket));
    const int entry = entry_of(microbatch_, bucket);
    sync_.run(entry);
    if (replicas_) sync_.run(entry + 1);
    under_way_[buckets_[bucket].turn] = UnderWay{bucket, microbatch_};
  }

  void complete(std::optional<UnderWay>& sum) {
    if (!sum) return;
    const auto [bucket, microbatch] = *std::exchange(sum, std::nullopt);
    finite_ = sync_.wait(entry_of(microbatch, bucket) + (replicas_ ? 1 : 0)) && finite_;
    const Place& place = buckets_[bucket];
    if (into_sums(place, microbatch)) return;
    const at::NoGradGuard no_grad;
    const at::Tensor part = part_of(microbatch, bucket);
    if (microbatch == 0)
      place.sums.copy_(part);
    else
      at::Tensor(place.sums).add_(part);
  }

  SyncClient& sync_;
  State& state_;
  const bool replicas_;
  std::vector<std::string> unit_names_;
  std::vector<at::Tensor> like_;  // see like_views
  UnitGradients gradients_;
  std::vector<Place> buckets_;
  std::vector<std::size_t> live_;           // of buckets_: those with trained parameters
  std::vector<at::Tensor> memory_, parts_;  // by turn: of whole buckets, and of this rank's parts
  std::array<std::optional<UnderWay>, kTurns> under_way_;  // the reduction in each turn's memory
  int first_ = 0;                                          // index of the first reduction in the plan
  int64_t microbatch_ = 0;
  bool finite_ = true;
  double bucket_bytes_ = 0;
};

}  // namespace

std::unique_ptr<GradientSync> make_unit_sync(SyncClient& sync, State& state, const std::vector<Unit>& units,
                                             bool replicas) {
  return std::make_unique<UnitSync>(sync, state, units, replicas);
}

}  // namespace tutti

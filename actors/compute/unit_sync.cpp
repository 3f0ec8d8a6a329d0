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
#include "tensors/memory/ledger.h"

namespace tutti {
namespace {

constexpr std::size_t kRootTurn = 2;  // of the root unit's memory; 0 and 1 are the others'
constexpr std::size_t kTurns = 3;

// The memory of a rank's sums of gradients: each bucket of a unit is summed in memory that other ranks read,
// of which two buckets of units have each one block in turn, and the root unit its own.
class UnitSums {
 public:
  // The place where a bucket is summed.
  struct Place {
    std::size_t turn = 0;
    bool direct = true;      // the first portion's sums are `sums`; else they are cast into them
    int64_t largest = 0;     // elements of the largest part, with all parameters
    at::Tensor memory = {};  // of the sums

    // Only of parameters that are trained now, if any.
    int index = 0;  // among the live buckets
    CutPtr cut = {};
    std::optional<RowsOfRank> rows = {};  // in its part
    at::Tensor sums = {};                 // flat: this rank's part, over portions
    std::vector<DigestPart> names = {};   // of the bytes of the part
  };

  // `like`: the whole parameters with the dtypes of their views, and without memory. Collective. All must
  // outlive this.
  UnitSums(SyncClient& sync, const State& state, const std::vector<at::Tensor>& like,
           const UnitGradients& gradients, bool replicas)
      : sync_(sync), state_(state), like_(like), gradients_(gradients), replicas_(replicas) {
    std::array<int64_t, kTurns> whole{};
    std::vector<int64_t> sums;
    for (std::size_t b = 0; b < gradients.buckets().size(); ++b) {
      const Bucket& bucket = gradients.buckets()[b];
      Place place{.turn = gradients.unit_of(b) == 0 ? kRootTurn : b % kRootTurn,
                  .largest = cut_of(bucket)->largest_part()};
      place.direct = std::ranges::all_of(bucket.slots, [&](const BucketSlot& slot) {
        return like[slot.parameter].scalar_type() == bucket.dtype;
      });
      whole[place.turn] = std::max(whole[place.turn], bucket.bytes);
      sums.push_back(place.largest * static_cast<int64_t>(c10::elementSize(sum_dtype(place, bucket))));
      places_.push_back(std::move(place));
    }
    memory_ = sync.allocate(GroupRole::kReductions, {whole.begin(), whole.end()});
    const auto memory = allocate_for_replicas(sums);
    for (std::size_t b = 0; b < places_.size(); ++b) places_[b].memory = memory[b];
    count_bytes(memory_);
    count_bytes(memory);
    follow(trained_of(state));
  }

  // Frozen parameters have no place in a part.
  void follow(const std::vector<bool>& trained) {
    live_.clear();
    const auto names = names_of(state_);
    for (std::size_t b = 0; b < places_.size(); ++b) {
      const Bucket bucket = with_only(gradients_.buckets()[b], trained);
      if (bucket.slots.empty()) {
        TUTTI_PROBE("sharding: all parameters of a unit are frozen");
        continue;
      }
      Place& place = places_[b];
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

  // Memory for sums that are not `sums` at once. Grains are summed as a tree (sharding/tree_sum.h): there it
  // also has the partial sums.
  void allocate_parts(int64_t portions) {
    portions_ = portions;
    const bool tree = state_.topology.has_grains;
    for (int64_t half = portions / 2; tree && (half >> partial_.size()) > 0;) {
      auto& level = partial_.emplace_back();
      for (std::size_t b = 0; b < places_.size(); ++b)
        level.push_back(
            at::empty({places_[b].largest}, state_.device.options(gradients_.buckets()[b].dtype)));
      count_bytes(level);
    }
    if (!parts_.empty()) return;
    std::array<int64_t, kTurns> bytes{};
    bool needed = false;
    for (std::size_t b = 0; b < places_.size(); ++b) {
      const Place& place = places_[b];
      bytes[place.turn] = std::max(bytes[place.turn], place.largest * gradients_.buckets()[b].item());
      needed = needed || portions > 1 || !place.direct;
    }
    if (needed) count_bytes(parts_ = allocate_for_replicas({bytes.begin(), bytes.end()}));
  }

  const std::vector<std::size_t>& live() const { return live_; }  // the buckets with trained parameters
  const Place& operator[](std::size_t bucket) const { return places_[bucket]; }
  const at::Tensor& memory(std::size_t turn) const { return memory_[turn]; }  // of whole buckets
  double bytes() const { return bytes_; }

  // Where this rank's part of a portion's sum goes.
  at::Tensor part_of(int64_t portion, std::size_t bucket) const {
    const Place& place = places_[bucket];
    if (into_sums(place, portion)) return place.sums;
    return parts_[place.turn].view(gradients_.buckets()[bucket].dtype).narrow(0, 0, part_size(place));
  }

  // Call when a portion's sum is done.
  void add(int64_t portion, std::size_t bucket) const {
    const Place& place = places_[bucket];
    if (into_sums(place, portion)) return;
    const at::NoGradGuard no_grad;
    const at::Tensor part = part_of(portion, bucket);
    if (state_.topology.has_grains) return add_grain(portion, bucket, part);
    if (portion == 0)
      place.sums.copy_(part);
    else
      at::Tensor(place.sums).add_(part);
  }

 private:
  static at::ScalarType sum_dtype(const Place& place, const Bucket& bucket) {
    return place.direct ? bucket.dtype : at::kFloat;
  }
  bool into_sums(const Place& place, int64_t portion) const {
    return place.direct && portion == 0 && (portions_ == 1 || !state_.topology.has_grains);
  }

  // `part`: the sum of the portion, written.
  void add_grain(int64_t portion, std::size_t bucket, at::Tensor part) const {
    std::size_t level = 0;
    const auto partial = [&] { return partial_[level][bucket].narrow(0, 0, part.numel()); };
    for (; portion & (int64_t{1} << level); ++level) part.add_(partial());
    (portion + 1 == portions_ ? places_[bucket].sums : partial()).copy_(part);
  }
  CutPtr cut_of(const Bucket& bucket) const {
    return cut_by_rows(bucket, like_, state_.views, state_.topology.share.pieces);
  }
  int64_t part_size(const Place& place) const { return place.cut->part_size(state_.topology.share.index); }

  void count_bytes(const std::vector<at::Tensor>& memory) {
    bytes_ += bytes_of(memory, [](const at::Tensor& tensor) { return tensor; });
  }

  // Memory for sums over replicas, which the replicas read.
  std::vector<at::Tensor> allocate_for_replicas(std::vector<int64_t> bytes) {
    if (replicas_) return sync_.allocate(GroupRole::kReplicas, std::move(bytes));
    std::vector<at::Tensor> memory;
    for (const int64_t size : bytes) memory.push_back(at::empty({size}, state_.device.options(at::kByte)));
    return memory;
  }

  SyncClient& sync_;
  const State& state_;
  const std::vector<at::Tensor>& like_;
  const UnitGradients& gradients_;
  const bool replicas_;
  std::vector<Place> places_;  // of each bucket
  std::vector<std::size_t> live_;
  std::vector<at::Tensor> memory_, parts_;  // by turn: of whole buckets, and of this rank's parts
  int64_t portions_ = 1;
  std::vector<std::vector<at::Tensor>> partial_;  // by power of two and bucket: sums of so many portions
  double bytes_ = 0;
};

// Gathers G and reductions R of units have one order on all ranks: ..., G(2), R(3), G(1), R(2), R(1). Before
// a rank waits for one of them, it has requested or serves all earlier ones, so ranks cannot deadlock.
class UnitSync final : public GradientSync, private UnitGradients::Owner {
 public:
  UnitSync(SyncClient& sync, State& state, const std::vector<Unit>& units, bool replicas)
      : sync_(sync),
        state_(state),
        replicas_(replicas),
        like_(like_views(state)),
        gradients_(state.parameters, like_, units, state.precision.reduce_dtype, state.topology.has_grains,
                   *this),
        sums_(sync, state, like_, gradients_, replicas) {
    for (const Unit& unit : units) unit_names_.push_back(unit.name);
  }

  void begin_pass() override {
    gradients_.begin_pass();
    finite_ = true;
  }
  void begin_portion(const Portion& portion) override {
    portion_ = portion.index;
    gradients_.begin_portion();
  }
  // A rank without samples in the portion takes part with zeros.
  void end_portion() override { gradients_.end_portion(); }
  void leave_after(std::size_t unit) override { gradients_.leave_after(unit); }
  void abandon_pass() override {
    if (std::ranges::any_of(under_way_, [](const auto& sum) { return sum.has_value(); }))
      TUTTI_PROBE("sharding: a pass is abandoned while sums of units are under way");
    gradients_.abandon_pass();
    under_way_ = {};
  }
  bool owns_gradients() const override { return true; }
  double bucket_bytes() const override { return sums_.bytes(); }

  void follow_frozen(const std::vector<bool>& trained) override { sums_.follow(trained); }
  std::vector<PlanEntry> plan(int first, int64_t portions) override {
    first_ = first;
    sums_.allocate_parts(portions);
    std::vector<PlanEntry> entries;
    std::array<int, kTurns> before;  // the last entry that uses the turn's memory
    before.fill(-1);
    for (int64_t portion = 0; portion < portions; ++portion)
      for (const std::size_t b : sums_.live()) {
        int& last = before[sums_[b].turn];
        entries.push_back(scatter(portion, b));
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
    if (portion_ > 0 && !state_.device.runs_ahead())
      finite_ = finite_ && std::ranges::all_of(sums_.live(),
                                               [this](std::size_t b) { return all_finite(sums_[b].sums); });
    return finite_;
  }

  std::vector<at::Tensor> gradients() override {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients(like_.size());
    for (const std::size_t b : sums_.live()) sums_[b].rows->take(sums_[b].sums, gradients);
    return gradients;
  }
  int64_t unused() const override { return gradients_.unused(); }
  at::Tensor used() const override { return gradients_.used(); }

 private:
  struct UnderWay {
    std::size_t bucket = 0;
    int64_t portion = 0;
  };

  static std::vector<at::Tensor> like_views(const State& state) {
    std::vector<at::Tensor> like;
    for (std::size_t p = 0; p < state.parameters.size(); ++p)
      like.push_back(stand_in(state.parameters[p].parameter->tensor, state.views[p].tensor.scalar_type()));
    return like;
  }

  PlanEntry scatter(int64_t portion, std::size_t b) const {
    const Bucket& bucket = gradients_.buckets()[b];
    const std::string& unit = unit_names_[gradients_.unit_of(b)];
    const std::string of = portion == 0 ? "" : " in microbatch " + std::to_string(portion);
    return {.kind = CollectiveKind::kReduceScatter,
            .group = GroupRole::kReductions,
            .whole = sums_.memory(sums_[b].turn).narrow(0, 0, bucket.bytes).view(bucket.dtype),
            .part = sums_.part_of(portion, b),
            .cut = sums_[b].cut,
            .place = PassPlace::sum(portion, gradients_.unit_of(b), unit_names_.size()),
            .label = "gradients of " + unit + of,
            .begins = TraceKind::kReduceBucket,
            .number = static_cast<int64_t>(b),
            .parts = sums_[b].names};
  }

  int entry_of(int64_t portion, std::size_t bucket) const {
    const int64_t each = replicas_ ? 2 : 1;
    return first_ + static_cast<int>((portion * std::ssize(sums_.live()) + sums_[bucket].index) * each);
  }

  // Memory that an earlier bucket of the same turn has left.
  at::Tensor memory_of(std::size_t bucket) override {
    const std::size_t turn = sums_[bucket].turn;
    if (under_way_[turn] && under_way_[turn]->portion < portion_)
      TUTTI_PROBE("sharding: a sum of the microbatch before is still under way");
    complete(under_way_[turn]);
    return sums_.memory(turn);
  }

  void full(std::size_t bucket) override {
    sync_.record(TraceKind::kBucketFull, static_cast<int64_t>(bucket));
    const int entry = entry_of(portion_, bucket);
    sync_.run(entry);
    if (replicas_) sync_.run(entry + 1);
    under_way_[sums_[bucket].turn] = UnderWay{bucket, portion_};
  }

  void complete(std::optional<UnderWay>& sum) {
    if (!sum) return;
    const auto [bucket, portion] = *std::exchange(sum, std::nullopt);
    finite_ = sync_.wait(entry_of(portion, bucket) + (replicas_ ? 1 : 0)) && finite_;
    sums_.add(portion, bucket);
  }

  SyncClient& sync_;
  State& state_;
  const bool replicas_;
  std::vector<std::string> unit_names_;
  std::vector<at::Tensor> like_;
  UnitGradients gradients_;
  UnitSums sums_;
  std::array<std::optional<UnderWay>, kTurns> under_way_;  // the reduction in each turn's memory
  int first_ = 0;                                          // index of the first reduction in the plan
  int64_t portion_ = 0;
  bool finite_ = true;
};

}  // namespace

std::unique_ptr<GradientSync> make_unit_sync(SyncClient& sync, State& state, const std::vector<Unit>& units,
                                             bool replicas) {
  return std::make_unique<UnitSync>(sync, state, units, replicas);
}

}  // namespace tutti

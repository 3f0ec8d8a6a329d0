#include "actors/compute/unsharding.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/probe/probe.h"
#include "sharding/autocast.h"
#include "sharding/shard_plan.h"

namespace tutti {

Unsharding::Unsharding(SyncClient& sync, State& state, const std::vector<Unit>& units, bool stays,
                       const std::vector<bool>& cast)
    : sync_(sync),
      state_(state),
      units_(units),
      parameters_(state, units, stays, cast),
      asked_for_(units.size(), kNone) {
  for (std::size_t u = 0; u < units.size(); ++u)
    if (units[u].slot)
      hooks_.push_back(units[u].slot->around(
          [this, u](const TensorTree& input, const Slot::Next& next) { return forward(u, input, next); }));
  parameters_.bind(sync.allocate(GroupRole::kGathers, parameters_.shared_bytes()));
}

std::vector<PlanEntry> Unsharding::plan_of_all() {
  auto entries = plan(/*forwards=*/1, /*portions=*/0, {});
  all_ = true;
  std::size_t entry = 0;
  for (const Use& use : uses_)
    for (const auto& block : parameters_.blocks_of(use.unit)) entries[entry++].part = block.exact;
  return entries;
}

void Unsharding::add_use(std::size_t unit, Phase phase, int64_t portion, int first_entry,
                         const std::vector<PlanEntry>& entries) {
  all_ = false;
  uses_.push_back({unit, phase, portion, first_entry, static_cast<int>(entries.size())});
}

PlanEntry Unsharding::entry_of(const ShardedParameters::Block& block, CutPtr cut) const {
  return {.kind = CollectiveKind::kAllGather,
          .group = GroupRole::kGathers,
          .whole = reshards() ? at::Tensor() : block.part,
          .part = block.part,
          .cut = std::move(cut),
          .label = "parameters of " + units_[block.unit].name,
          .begins = TraceKind::kGather,
          .ends = TraceKind::kGathered,
          .number = static_cast<int64_t>(block.unit)};
}

void Unsharding::begin_portion(int64_t portion) {
  portion_ = portion;
  backward_at_ = units_.size();
}

void Unsharding::end_pass() {
  active_ = false;
  portion_ = kNone;
  for (std::size_t u = 0; u < units_.size(); ++u) free(u);
}

void Unsharding::visit_all(const RankServices::Visit& visit) {
  for (next_ = 0; next_ < uses_.size();) {
    const std::size_t unit = uses_[next_].unit;
    request(next_);
    wait(unit);
    for (const auto& block : parameters_.blocks_of(unit))
      for (const BucketSlot& slot : block.layout.slots) visit(slot.parameter);
    if (reshards()) free(unit);
  }
}

TensorTree Unsharding::forward(std::size_t unit, const TensorTree& input, const Slot::Next& next) {
  if (!active_)
    throw UserError(
        "the model is run outside of training and evaluation, when its sharded parameters are "
        "not gathered; State::with_model gathers them");
  sync_.record(TraceKind::kUnitForward, static_cast<int64_t>(unit));
  unshard(unit, Phase::kForward);
  prefetch(Phase::kForward);
  TensorTree output = next(input);
  const bool has_backward = hook_backward(unit, output);
  sync_.record(TraceKind::kUnitForwardDone, static_cast<int64_t>(unit));
  reshard(unit, has_backward);
  return output;
}

// A hook on the tensor, unlike a function that passes it on, leaves operations in place possible. False if
// there is no backward.
bool Unsharding::hook_backward(std::size_t unit, const TensorTree& output) const {
  bool any = false;
  for (const auto& [name, tensor] : output.leaves()) {
    if (!tensor.requires_grad()) continue;
    any = true;
    tensor.register_hook([unit, self = std::weak_ptr(self_)](const at::Tensor&) {
      if (const auto live = self.lock()) (*live)->before_backward(unit);
    });
  }
  return any;
}

// Called once for each output with a gradient.
void Unsharding::before_backward(std::size_t unit) {
  if (!active_ || unit >= backward_at_) return;
  backward_at_ = unit;
  leave_after(unit);
  unshard(unit, Phase::kBackward);
  prefetch(Phase::kBackward);
}

void Unsharding::request(std::size_t use) {
  const Use& asked = uses_[use];
  std::vector<at::Tensor> memory;  // all of it before any gather is asked for
  for (std::size_t b = parameters_.first_block(asked.unit); b < parameters_.last_block(asked.unit); ++b)
    memory.push_back(all_ ? parameters_.hold_exact(b) : parameters_.hold(b));
  for (int entry = asked.first_entry; entry < asked.last_entry; ++entry)
    sync_.run(entry, reshards() ? memory[static_cast<std::size_t>(entry - asked.first_entry)] : at::Tensor());
  asked_for_[asked.unit] = static_cast<std::ptrdiff_t>(use);
  next_ = use + 1;
}

void Unsharding::wait(std::size_t unit) {
  if (asked_for_[unit] == kNone) return;
  const Use& asked = uses_[static_cast<std::size_t>(std::exchange(asked_for_[unit], kNone))];
  for (int entry = asked.first_entry; entry < asked.last_entry; ++entry) sync_.wait(entry);
  for (std::size_t b = parameters_.first_block(unit); b < parameters_.last_block(unit); ++b)
    parameters_.show(b);
}

void Unsharding::free(std::size_t unit) {
  if (asked_for_[unit] != kNone) TUTTI_PROBE("sharding: a unit is freed while its gather is under way");
  wait(unit);
  for (std::size_t b = parameters_.first_block(unit); b < parameters_.last_block(unit); ++b)
    parameters_.free(b);
}

namespace {

// Whole parameters stay in memory, and are gathered once a pass. A frozen parameter is gathered once, and
// again when its rows change on some rank.
class UnshardOnce final : public Unsharding {
 public:
  UnshardOnce(SyncClient& sync, State& state, const std::vector<Unit>& units)
      : Unsharding(sync, state, units, /*stays=*/true, {}), changed_(at::zeros({1}, at::kDouble)) {}

  bool reshards() const override { return false; }

  std::vector<PlanEntry> plan(int64_t, int64_t, const std::vector<bool>& trained) override {
    std::vector<PlanEntry> entries;
    uses_.clear();
    if (trained != trained_) frozen_rows_.reset();
    trained_ = trained;
    if (some_are_frozen())
      entries.push_back(
          {.group = GroupRole::kGathers, .whole = changed_, .label = "changes of what is frozen"});
    else
      frozen_rows_.reset();  // a listener may have exchanged weights for these passes
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const auto first = static_cast<int>(entries.size());
      for (const auto& block : parameters_.blocks_of(u))
        if (some_are_frozen())
          add_halves(block, entries);
        else
          entries.push_back(entry_of(block, block.cut));
      add_use(u, Phase::kForward, kNone, first, entries);
    }
    return entries;
  }

  void begin_pass() override {
    parameters_.cast_parts();
    active_ = true;
    if (some_are_frozen()) look_for_changes();
    for (std::size_t use = 0; use < uses_.size(); ++use) request(use);
    wait(0);
  }
  void serve_pass() override { begin_pass(); }

 private:
  void unshard(std::size_t unit, Phase) override { wait(unit); }

  bool some_are_frozen() const { return std::ranges::find(trained_, false) != trained_.end(); }

  // Trained parameters always; frozen ones if the first entry says that a rank's rows have changed.
  void add_halves(const ShardedParameters::Block& block, std::vector<PlanEntry>& entries) const {
    auto frozen = trained_;
    frozen.flip();
    for (const bool is_trained : {true, false}) {
      const Bucket half = with_only(block.layout, is_trained ? trained_ : frozen);
      if (half.slots.empty()) continue;
      PlanEntry& entry = entries.emplace_back(
          entry_of(block, cut_by_rows(half, tensors_of(state_), state_.views, state_.topology.share.pieces)));
      entry.if_any = !is_trained;
      if (entry.if_any) entry.after = 0;
    }
  }

  // Frozen rows change only where an algorithm has acted, or between the passes of a closure.
  void look_for_changes() {
    const bool acted = acts_seen_ != state_.acts_on_parameters;
    const bool looks = !frozen_rows_ || acted || state_.closure_step;
    changed_.fill_(looks && hash_frozen_rows() ? 1 : 0);
    acts_seen_ = state_.acts_on_parameters;
    sync_.run(0);
  }

  // True if the hash is another one than before.
  bool hash_frozen_rows() {
    StreamedHash rows;
    for (std::size_t p = 0; p < trained_.size(); ++p) {
      const at::Tensor& own = state_.views[p].tensor;
      if (trained_[p]) continue;
      const at::Tensor host = own.cpu();
      rows.add({static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()});
    }
    const uint64_t now = rows.value();
    const bool changed = std::exchange(frozen_rows_, now) != now;
    if (changed) TUTTI_PROBE("sharding: frozen rows of a rank changed");
    return changed;
  }

  std::vector<bool> trained_;  // of the plan; empty: no backward
  at::Tensor changed_;         // [1] float64: not 0 if this rank's rows of frozen parameters changed
  std::optional<uint64_t> frozen_rows_;  // hash of those rows at their last gather
  int64_t acts_seen_ = 0;                // State::acts_on_parameters, then
};

// Each unit has memory only while the model computes with it. A frozen one is gathered for backward only if
// an earlier parameter is trained.
class UnshardByUnit final : public Unsharding {
 public:
  UnshardByUnit(SyncClient& sync, State& state, const std::vector<Unit>& units,
                const ShardingSettings& settings)
      : Unsharding(sync, state, units, /*stays=*/false,
                   state.precision.autocast ? cast_by_autocast(*state.model) : std::vector<bool>()),
        prefetch_(settings.prefetch),
        reshard_after_forward_(settings.reshard_after_forward) {}

  bool reshards() const override { return true; }

  std::vector<PlanEntry> plan(int64_t forwards, int64_t portions, const std::vector<bool>& trained) override {
    std::vector<PlanEntry> entries;
    uses_.clear();
    gathers_again_ = find_gathers_again(trained);
    add(0, Phase::kForward, kNone, entries);
    for (int64_t f = 0; f < forwards; ++f) add_sweep(Phase::kForward, kNone, entries);
    for (int64_t m = 0; m < portions; ++m) {
      add_sweep(Phase::kForward, m, entries);
      if (reshard_after_forward_) add_sweep(Phase::kBackward, m, entries);
    }
    return entries;
  }

  void begin_pass() override {
    parameters_.cast_parts();
    active_ = true;
    next_ = 0;
    portion_ = kNone;
    request(0);
    wait(0);
    prefetch(Phase::kForward);
  }
  void serve_pass() override { parameters_.cast_parts(); }

  void end_forwards() override {
    if (!active_) next_ = 0;
    Unsharding::end_forwards();
    free_later_than(0);
    skip_to(first_of(0));
  }

  void begin_portion(int64_t portion) override {
    Unsharding::begin_portion(portion);
    free_later_than(0);
    skip_to(first_of(portion));
    prefetch(Phase::kForward);
  }
  void end_portion() override {
    free_later_than(0);
    std::size_t end = next_;
    while (end < uses_.size() && uses_[end].portion == portion_) ++end;
    if (next_ < end) TUTTI_PROBE("sharding: a rank serves gathers for other ranks alone");
    skip_to(end);
    Unsharding::end_portion();
  }

 private:
  // The last unit's backward follows its forward.
  void add_sweep(Phase phase, int64_t portion, std::vector<PlanEntry>& entries) {
    const std::size_t last = units_.size() - 1;
    if (phase == Phase::kForward)
      for (std::size_t u = 1; u <= last; ++u) add(u, phase, portion, entries);
    else
      for (std::size_t u = last; u-- > 1;)
        if (gathers_again_[u]) add(u, phase, portion, entries);
  }

  void add(std::size_t unit, Phase phase, int64_t portion, std::vector<PlanEntry>& entries) {
    const auto first = static_cast<int>(entries.size());
    for (const auto& block : parameters_.blocks_of(unit)) {
      entries.push_back(entry_of(block, block.cut));
      entries.back().place =
          phase == Phase::kBackward ? PassPlace::gather(portion, unit, units_.size()) : PassPlace{portion};
    }
    add_use(unit, phase, portion, first, entries);
  }

  // Backward ends behind the first trained parameter. A unit for which this is wrong, because the model calls
  // the root unit's parameters in another order, stays until its backward.
  std::vector<bool> find_gathers_again(const std::vector<bool>& trained) const {
    std::vector<bool> gathers(units_.size(), true);
    if (trained.empty()) return gathers;
    bool before = false;
    for (std::size_t u = 1; u < units_.size(); ++u) {
      const auto is_trained = [&](std::size_t p) { return trained[p]; };
      const auto is_root_before = [&](std::size_t p) {
        return trained[p] && p < units_[u].parameters.back();
      };
      before = before || std::ranges::any_of(units_[u].parameters, is_trained);
      gathers[u] = before || std::ranges::any_of(units_[0].parameters, is_root_before);
    }
    return gathers;
  }

  void unshard(std::size_t unit, Phase phase) override {
    if (asked_for_[unit] != kNone) return wait(unit);
    if (is_held(unit)) {
      if (phase == Phase::kBackward) TUTTI_PROBE("sharding: a unit is still there when its backward begins");
      return;
    }
    for (std::size_t u = 1; u < units_.size(); ++u)
      if (asked_for_[u] != kNone) free(u);  // gathered ahead, and not called
    const std::size_t use = find(unit, phase);
    skip_to(use);
    request(use);
    wait(unit);
  }

  void prefetch(Phase phase) override {
    if (!prefetch_ || next_ >= uses_.size()) return;
    const Use& next = uses_[next_];
    if (next.phase == phase && next.portion == portion_ && !is_held(next.unit)) request(next_);
  }

  // It stays until its backward if that follows at once, or if it is not gathered again.
  void reshard(std::size_t unit, bool has_backward) override {
    const bool trains = portion_ != kNone && at::GradMode::is_enabled();
    const bool is_last = unit + 1 == units_.size();
    if (trains && has_backward && !gathers_again_[unit])
      TUTTI_PROBE("sharding: a frozen unit stays until its backward");
    if (trains && (!reshard_after_forward_ || is_last || (has_backward && !gathers_again_[unit]))) return;
    free(unit);
  }

  void leave_after(std::size_t unit) override {
    free_later_than(unit);
    if (asked_for_[unit] == kNone && !is_held(unit)) skip_to(find(unit, Phase::kBackward));
    Unsharding::leave_after(unit);
  }

  std::size_t find(std::size_t unit, Phase phase) const {
    for (std::size_t i = next_; i < uses_.size() && uses_[i].portion == portion_; ++i)
      if (uses_[i].unit == unit && uses_[i].phase == phase) return i;
    throw UserError("sharding: '" + units_[unit].name +
                    "' is called twice in a pass, or out of the model's order; "
                    "[sharding] units can leave it to the parameters that are gathered for the whole pass");
  }

  void skip_to(std::size_t use) {
    for (; next_ < use; ++next_) {
      const Use& skipped = uses_[next_];
      for (int entry = skipped.first_entry; entry < skipped.last_entry; ++entry) sync_.run(entry);
    }
  }

  void free_later_than(std::size_t unit) {
    for (std::size_t u = unit + 1; u < units_.size(); ++u) free(u);
  }

  // The next use of the portion, or of a later one.
  std::size_t first_of(int64_t portion) const {
    std::size_t first = next_;
    while (first < uses_.size() && uses_[first].portion < portion) ++first;
    return first;
  }

  bool is_held(std::size_t unit) const {
    return parameters_.blocks_of(unit).empty() || parameters_.is_held(parameters_.first_block(unit));
  }

  const bool prefetch_, reshard_after_forward_;
  std::vector<bool> gathers_again_;  // of each unit, whether the plan has a gather for its backward
};

}  // namespace

std::unique_ptr<Unsharding> make_unsharding(SyncClient& sync, State& state, const std::vector<Unit>& units,
                                            const ShardingSettings& settings) {
  using enum ShardingStrategy;
  if (settings.strategy == kFull || settings.strategy == kHybrid)
    return std::make_unique<UnshardByUnit>(sync, state, units, settings);
  return std::make_unique<UnshardOnce>(sync, state, units);
}

}  // namespace tutti

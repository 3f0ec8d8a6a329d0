#include "actors/compute/gathers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "actors/messages/messages.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "sharding/autocast.h"
#include "sharding/shard_plan.h"

namespace tutti {

Gathers::Gathers(Context& context, State& state, const std::vector<Unit>& units, Options options,
                 const RankActors& actors, Recorder& recorder, const Allocate& allocate)
    : context_(context),
      state_(state),
      sync_(actors.sync),
      recorder_(recorder),
      units_(units),
      options_(std::move(options)),
      parameters_(
          state, units, !options_.frees,
          options_.frees && state.precision.autocast ? cast_by_autocast(*state.model) : std::vector<bool>()),
      hooks_(units, {[this](std::size_t u) { before_forward(u); },
                     [this](std::size_t u, bool backward) { after_forward(u, backward); },
                     [this](std::size_t u) { before_backward(u); }}),
      changed_(at::zeros({1}, at::kDouble)),
      asked_for_(units.size(), kNone) {
  parameters_.bind(allocate(parameters_.shared_bytes()));
}

std::vector<PlanEntry> Gathers::plan_of_all() {
  auto entries = plan_of_forwards(1);
  all_ = true;
  std::size_t entry = 0;
  for (const Use& use : uses_)
    for (std::size_t b = parameters_.first_block(use.unit); b < parameters_.last_block(use.unit); ++b)
      entries[entry++].part = parameters_.blocks()[b].exact;
  return entries;
}

std::vector<PlanEntry> Gathers::plan(int64_t forwards, int64_t microbatches,
                                     const std::vector<bool>& trained) {
  std::vector<PlanEntry> entries;
  all_ = false;
  uses_.clear();
  trained_ = trained;
  gathers_again_ = find_gathers_again();
  if (asks_for_changes())
    entries.push_back(
        {.group = GroupRole::kGathers, .whole = changed_, .label = "changes of what is frozen"});
  else
    frozen_rows_.reset();  // a listener may have exchanged weights for these passes
  add(0, Phase::kForward, kNone, entries);
  if (!options_.frees) forwards = 1, microbatches = 0;
  for (int64_t f = 0; f < forwards; ++f) add_sweep(Phase::kForward, kNone, entries);
  for (int64_t m = 0; m < microbatches; ++m) {
    add_sweep(Phase::kForward, m, entries);
    if (options_.reshard_after_forward) add_sweep(Phase::kBackward, m, entries);
  }
  return entries;
}

// The last unit's backward follows its forward.
void Gathers::add_sweep(Phase phase, int64_t microbatch, std::vector<PlanEntry>& entries) {
  const auto last = std::ssize(units_) - 1;
  if (phase == Phase::kForward)
    for (std::ptrdiff_t u = 1; u <= last; ++u) add(static_cast<std::size_t>(u), phase, microbatch, entries);
  else
    for (std::ptrdiff_t u = last - 1; u >= 1; --u)
      if (gathers_again_[static_cast<std::size_t>(u)])
        add(static_cast<std::size_t>(u), phase, microbatch, entries);
}

void Gathers::add(std::size_t unit, Phase phase, int64_t microbatch, std::vector<PlanEntry>& entries) {
  const auto first = static_cast<int>(entries.size());
  for (std::size_t b = parameters_.first_block(unit); b < parameters_.last_block(unit); ++b) {
    const ShardedParameters::Block& block = parameters_.blocks()[b];
    if (asks_for_changes())
      add_halves(block, entries);
    else
      entries.push_back(entry_of(block, block.cut));
  }
  uses_.push_back({unit, phase, microbatch, first, static_cast<int>(entries.size())});
}

PlanEntry Gathers::entry_of(const ShardedParameters::Block& block, CutPtr cut) const {
  return {.kind = CollectiveKind::kAllGather,
          .group = GroupRole::kGathers,
          .whole = options_.frees ? at::Tensor() : block.part,
          .part = block.part,
          .cut = std::move(cut),
          .label = "parameters of " + units_[block.unit].name,
          .begins = TraceKind::kGather,
          .ends = TraceKind::kGathered,
          .number = static_cast<int64_t>(block.unit)};
}

// Trained parameters always; frozen ones if the first entry says that a rank's rows have changed.
void Gathers::add_halves(const ShardedParameters::Block& block, std::vector<PlanEntry>& entries) const {
  auto frozen = trained_;
  frozen.flip();
  for (const bool is_trained : {true, false}) {
    const Bucket half = with_only(block.layout, is_trained ? trained_ : frozen);
    if (half.slots.empty()) continue;
    PlanEntry& entry = entries.emplace_back(
        entry_of(block, cut_by_rows(half, tensors_of(state_), state_.topology.share.pieces)));
    entry.if_any = !is_trained;
    if (entry.if_any) entry.after = 0;
  }
}

bool Gathers::asks_for_changes() const {
  return !options_.frees && std::ranges::find(trained_, false) != trained_.end();
}

void Gathers::look_for_changes() {
  StreamedHash rows;
  for (std::size_t p = 0; p < trained_.size(); ++p) {
    const at::Tensor& own = state_.views[p].tensor;
    if (!trained_[p]) rows.add({static_cast<const std::byte*>(own.const_data_ptr()), own.nbytes()});
  }
  const uint64_t now = rows.value();
  changed_.fill_(std::exchange(frozen_rows_, now) == now ? 0 : 1);
  run(0, {});
}

// Backward ends behind the first trained parameter. A unit for which this is wrong, because the model calls
// the root unit's parameters in another order, stays until its backward.
std::vector<bool> Gathers::find_gathers_again() const {
  std::vector<bool> found(units_.size(), true);
  if (trained_.empty()) return found;
  bool before = false;
  for (std::size_t u = 1; u < units_.size(); ++u) {
    const auto is_trained = [this](std::size_t p) { return trained_[p]; };
    const auto is_root_before = [&](std::size_t p) { return trained_[p] && p < units_[u].parameters.back(); };
    before = before || std::ranges::any_of(units_[u].parameters, is_trained);
    found[u] = before || std::ranges::any_of(units_[0].parameters, is_root_before);
  }
  return found;
}

void Gathers::begin_pass() {
  parameters_.cast_parts();
  active_ = true;
  next_ = 0;
  microbatch_ = kNone;
  if (asks_for_changes()) look_for_changes();
  request(0);
  wait(0);
  if (options_.frees) return prefetch(Phase::kForward);
  while (next_ < uses_.size()) request(next_);
}

void Gathers::visit_all(const RankServices::Visit& visit) {
  for (next_ = 0; next_ < uses_.size();) {
    const std::size_t unit = uses_[next_].unit;
    request(next_);
    wait(unit);
    for (std::size_t b = parameters_.first_block(unit); b < parameters_.last_block(unit); ++b)
      for (const BucketSlot& slot : parameters_.blocks()[b].layout.slots) visit(slot.parameter);
    if (options_.frees) free(unit);
  }
}

void Gathers::begin_microbatch(int64_t microbatch) {
  microbatch_ = microbatch;
  backward_at_ = units_.size();
  if (!options_.frees) return;
  free_later_than(0);
  std::size_t first = next_;
  while (first < uses_.size() && uses_[first].microbatch < microbatch) ++first;
  skip_to(first);
  prefetch(Phase::kForward);
}

void Gathers::end_microbatch() {
  if (options_.frees) {
    free_later_than(0);
    std::size_t end = next_;
    while (end < uses_.size() && uses_[end].microbatch == microbatch_) ++end;
    skip_to(end);
  }
  microbatch_ = kNone;
}

void Gathers::end_pass() {
  active_ = false;
  microbatch_ = kNone;
  for (std::size_t u = 0; u < units_.size(); ++u) free(u);
}

void Gathers::before_forward(std::size_t unit) {
  if (!active_)
    throw UserError(
        "the model is run outside of training and evaluation, when its sharded parameters are "
        "not gathered; State::with_model gathers them");
  record(TraceKind::kUnitForward, unit);
  need(unit, Phase::kForward);
  if (options_.frees) prefetch(Phase::kForward);
}

void Gathers::after_forward(std::size_t unit, bool has_backward) {
  record(TraceKind::kUnitForwardDone, unit);
  if (options_.frees && !keeps(unit, has_backward)) free(unit);
}

// Until its backward: the last unit's follows at once.
bool Gathers::keeps(std::size_t unit, bool has_backward) const {
  const bool trains = microbatch_ != kNone && at::GradMode::is_enabled();
  const bool is_last = unit + 1 == units_.size();
  return trains && (!options_.reshard_after_forward || is_last || (has_backward && !gathers_again_[unit]));
}

void Gathers::before_backward(std::size_t unit) {
  if (!active_ || unit >= backward_at_) return;
  backward_at_ = unit;
  if (options_.frees) {
    free_later_than(unit);
    if (asked_for_[unit] == kNone && !is_held(unit)) skip_to(find(unit, Phase::kBackward));
  }
  if (options_.leave_after) options_.leave_after(unit);
  if (!options_.frees) return;
  need(unit, Phase::kBackward);
  prefetch(Phase::kBackward);
}

// Returns when the unit is held.
void Gathers::need(std::size_t unit, Phase phase) {
  if (asked_for_[unit] != kNone) return wait(unit);
  if (is_held(unit)) return;
  for (std::size_t u = 1; u < units_.size(); ++u)
    if (asked_for_[u] != kNone) free(u);  // gathered ahead, and not called
  const std::size_t use = find(unit, phase);
  skip_to(use);
  request(use);
  wait(unit);
}

std::size_t Gathers::find(std::size_t unit, Phase phase) const {
  for (std::size_t i = next_; i < uses_.size() && uses_[i].microbatch == microbatch_; ++i)
    if (uses_[i].unit == unit && uses_[i].phase == phase) return i;
  throw UserError("sharding: '" + units_[unit].name +
                  "' is called twice in a pass, or out of the model's order; "
                  "[sharding] units can leave it to the parameters that are gathered for the whole pass");
}

void Gathers::prefetch(Phase phase) {
  if (!options_.prefetch || next_ >= uses_.size()) return;
  const Use& next = uses_[next_];
  if (next.phase == phase && next.microbatch == microbatch_ && !is_held(next.unit)) request(next_);
}

void Gathers::request(std::size_t use) {
  const std::size_t unit = uses_[use].unit;
  std::vector<at::Tensor> memory;  // all of it before any gather is asked for
  for (std::size_t b = parameters_.first_block(unit); b < parameters_.last_block(unit); ++b)
    memory.push_back(all_ ? parameters_.hold_exact(b) : parameters_.hold(b));
  const int first = uses_[use].first_entry;
  for (int entry = first; entry < uses_[use].last_entry; ++entry)
    run(entry, options_.frees ? memory[static_cast<std::size_t>(entry - first)] : at::Tensor());
  asked_for_[unit] = static_cast<std::ptrdiff_t>(use);
  next_ = use + 1;
}

void Gathers::skip_to(std::size_t use) {
  for (; next_ < use; ++next_) {
    const Use& skipped = uses_[next_];
    for (int entry = skipped.first_entry; entry < skipped.last_entry; ++entry) run(entry, {});
  }
}

void Gathers::run(int entry, const at::Tensor& whole) {
  context_.send(sync_, RunEntry{entry, state_.timestamp.batch, whole});
}

void Gathers::wait(std::size_t unit) {
  if (asked_for_[unit] == kNone) return;
  const Use& asked = uses_[static_cast<std::size_t>(std::exchange(asked_for_[unit], kNone))];
  for (int entry = asked.first_entry; entry < asked.last_entry; ++entry)
    context_.ask<EntryDone>(sync_, AwaitEntry{entry});
  for (std::size_t b = parameters_.first_block(unit); b < parameters_.last_block(unit); ++b)
    parameters_.show(b);
}

void Gathers::free(std::size_t unit) {
  wait(unit);
  for (std::size_t b = parameters_.first_block(unit); b < parameters_.last_block(unit); ++b)
    parameters_.free(b);
}

void Gathers::free_later_than(std::size_t unit) {
  for (std::size_t u = unit + 1; u < units_.size(); ++u) free(u);
}

bool Gathers::is_held(std::size_t unit) const {
  const std::size_t first = parameters_.first_block(unit);
  return first == parameters_.last_block(unit) || parameters_.is_held(first);
}

void Gathers::record(TraceKind kind, std::size_t unit) {
  recorder_.record({context_.now(), kind, state_.timestamp.batch, static_cast<int64_t>(unit)});
}

}  // namespace tutti

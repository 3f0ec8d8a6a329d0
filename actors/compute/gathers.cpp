#include "actors/compute/gathers.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "actors/messages/messages.h"
#include "runtime/error.h"
#include "sharding/autocast.h"

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
      hooks_(units,
             {[this](std::size_t u) { before_forward(u); }, [this](std::size_t u) { after_forward(u); },
              [this](std::size_t u) { before_backward(u); }}),
      asked_for_(units.size(), kNone) {
  parameters_.bind(allocate(parameters_.shared_bytes()));
}

std::vector<PlanEntry> Gathers::plan_of_all() {
  auto entries = plan(1, 0);
  all_ = true;
  std::size_t entry = 0;
  for (const Use& use : uses_)
    for (std::size_t b = parameters_.first_block(use.unit); b < parameters_.last_block(use.unit); ++b)
      entries[entry++].part = parameters_.blocks()[b].exact;
  return entries;
}

std::vector<PlanEntry> Gathers::plan(int64_t forwards, int64_t microbatches) {
  std::vector<PlanEntry> entries;
  all_ = false;
  uses_.clear();
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
      add(static_cast<std::size_t>(u), phase, microbatch, entries);
}

void Gathers::add(std::size_t unit, Phase phase, int64_t microbatch, std::vector<PlanEntry>& entries) {
  uses_.push_back({unit, phase, microbatch, static_cast<int>(entries.size())});
  for (std::size_t b = parameters_.first_block(unit); b < parameters_.last_block(unit); ++b) {
    const ShardedParameters::Block& block = parameters_.blocks()[b];
    entries.push_back({.kind = CollectiveKind::kAllGather,
                       .group = GroupRole::kGathers,
                       .whole = options_.frees ? at::Tensor() : block.part,
                       .part = block.part,
                       .cut = block.cut,
                       .label = "parameters of " + units_[unit].name,
                       .begins = TraceKind::kGather,
                       .ends = TraceKind::kGathered,
                       .number = static_cast<int64_t>(unit)});
  }
}

void Gathers::begin_pass() {
  parameters_.cast_parts();
  active_ = true;
  next_ = 0;
  microbatch_ = kNone;
  request(0);
  wait(0);
  if (options_.frees) return prefetch(Phase::kForward);
  while (next_ < uses_.size()) request(next_);
}

void Gathers::visit_all(const State::Visit& visit) {
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

void Gathers::after_forward(std::size_t unit) {
  record(TraceKind::kUnitForwardDone, unit);
  if (options_.frees && !keeps(unit)) free(unit);
}

// Until its backward: the last unit's follows at once.
bool Gathers::keeps(std::size_t unit) const {
  const bool trains = microbatch_ != kNone && at::GradMode::is_enabled();
  return trains && (!options_.reshard_after_forward || unit + 1 == units_.size());
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
                  "' is called a second time in a pass, or after what comes behind it in the model; "
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
  int entry = uses_[use].first_entry;
  for (const at::Tensor& one : memory) run(entry++, one);
  asked_for_[unit] = static_cast<std::ptrdiff_t>(use);
  next_ = use + 1;
}

void Gathers::skip_to(std::size_t use) {
  for (; next_ < use; ++next_) {
    int entry = uses_[next_].first_entry;
    const std::size_t unit = uses_[next_].unit;
    for (std::size_t b = parameters_.first_block(unit); b < parameters_.last_block(unit); ++b)
      run(entry++, {});
  }
}

void Gathers::run(int entry, const at::Tensor& whole) {
  context_.send(sync_, RunEntry{entry, state_.timestamp.batch, whole});
}

void Gathers::wait(std::size_t unit) {
  if (asked_for_[unit] == kNone) return;
  int entry = uses_[static_cast<std::size_t>(std::exchange(asked_for_[unit], kNone))].first_entry;
  for (std::size_t b = parameters_.first_block(unit); b < parameters_.last_block(unit); ++b)
    context_.ask<EntryDone>(sync_, AwaitEntry{entry++});
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

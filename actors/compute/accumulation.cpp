#include "actors/compute/accumulation.h"

#include <algorithm>
#include <utility>

#include "runtime/probe/probe.h"

namespace tutti {
namespace {

constexpr int64_t kLongestWait = int64_t{1} << 20;  // intervals

}  // namespace

Accumulation::Accumulation(AccumulationSettings settings, int64_t device_batch)
    : settings_(std::move(settings)) {
  state_.unit = suffix(settings_.grow_interval.unit());
  const int64_t size = settings_.microbatch_size;
  if (size == 0) return;
  settings_.steps = {{0, static_cast<int>(std::max<int64_t>(1, (device_batch + size - 1) / size))}};
}

void Accumulation::restore(const AccumulationState& state, const Timestamp& now) {
  const std::string unit = state_.unit;
  state_ = state;
  if (state.unit != unit) state_.since = now.get(settings_.grow_interval.unit()).value();
  state_.unit = unit;
}

int Accumulation::count(int64_t step) const {
  if (automatic()) return state_.count;
  int count = 1;
  for (const auto& [from, value] : settings_.steps)
    if (from <= step) count = value;
  return count;
}

bool Accumulation::out_of_memory(const Timestamp& now, int64_t largest) {
  if (!automatic() || state_.count >= largest) return false;
  if (2 * state_.count > largest) TUTTI_PROBE("accumulation: a part of a batch has no power of two");
  state_.count = static_cast<int>(std::min<int64_t>(int64_t{2} * state_.count, largest));
  if (state_.count == largest) TUTTI_PROBE("accumulation: a batch is split into single samples");
  if (state_.trying) state_.patience = std::min(2 * state_.patience, kLongestWait);
  state_.trying = false;
  state_.since = now.get(settings_.grow_interval.unit()).value();
  return true;
}

bool Accumulation::committed(const Timestamp& now) {
  if (!automatic() || settings_.grow_interval.value() == 0) return false;
  const double time = now.get(settings_.grow_interval.unit()).value();
  if (time - state_.since < settings_.grow_interval.value() * static_cast<double>(state_.patience))
    return false;
  if (state_.trying) state_.patience = 1;
  state_.trying = state_.count > 1;
  state_.since = time;
  if (!state_.trying) return false;
  TUTTI_PROBE("accumulation: microbatches grow back");
  state_.count /= 2;
  return true;
}

}  // namespace tutti

#include "actors/compute/accumulation.h"

#include <algorithm>

namespace tutti {
namespace {

constexpr int64_t kMostPatience = int64_t{1} << 20;  // intervals

std::vector<std::pair<int64_t, int>> steps_of(const Setting& grad_accum) {
  if (grad_accum.is_none()) return {{0, 1}};
  if (grad_accum.is_text()) return {};
  if (grad_accum.is_integer()) return {{0, static_cast<int>(grad_accum.integer())}};
  std::vector<std::pair<int64_t, int>> steps;
  for (const auto& pair : grad_accum.array())
    steps.emplace_back(pair.array()[0].integer(), static_cast<int>(pair.array()[1].integer()));
  return steps;
}

}  // namespace

Accumulation::Accumulation(const Setting& train, int64_t device_batch)
    : steps_(steps_of(train.at("grad_accum"))),
      grow_interval_(Time::parse(train.at("grad_accum_grow_interval"))) {
  state_.unit = suffix(grow_interval_.unit());
  if (!train.has("device_train_microbatch_size")) return;
  microbatch_size_ = train.at("device_train_microbatch_size").integer();
  const int64_t count = (device_batch + microbatch_size_ - 1) / microbatch_size_;
  steps_ = {{0, static_cast<int>(std::max<int64_t>(1, count))}};
}

void Accumulation::restore(const AccumulationState& state, const Timestamp& now) {
  const std::string unit = state_.unit;
  state_ = state;
  if (state.unit != unit) state_.since = now.get(grow_interval_.unit()).value();
  state_.unit = unit;
}

int Accumulation::count(int64_t step) const {
  if (automatic()) return state_.count;
  int count = 1;
  for (const auto& [from, value] : steps_)
    if (from <= step) count = value;
  return count;
}

bool Accumulation::out_of_memory(const Timestamp& now, int64_t largest) {
  if (!automatic() || state_.count >= largest) return false;
  state_.count = static_cast<int>(std::min<int64_t>(int64_t{2} * state_.count, largest));
  if (state_.trying) state_.patience = std::min(2 * state_.patience, kMostPatience);
  state_.trying = false;
  state_.since = now.get(grow_interval_.unit()).value();
  return true;
}

bool Accumulation::committed(const Timestamp& now) {
  if (!automatic() || grow_interval_.value() == 0) return false;
  const double time = now.get(grow_interval_.unit()).value();
  if (time - state_.since < grow_interval_.value() * static_cast<double>(state_.patience)) return false;
  if (state_.trying) state_.patience = 1;
  state_.trying = state_.count > 1;
  state_.since = time;
  if (!state_.trying) return false;
  state_.count /= 2;
  return true;
}

}  // namespace tutti

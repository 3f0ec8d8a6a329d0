#include "algorithms/loop/lasting_tensors.h"

#include <ATen/core/grad_mode.h>

#include "runtime/error.h"

namespace tutti {
namespace {

bool has_passed(const Time& moment, const Timestamp& now, const Time& whole) {
  if (moment.unit() == TimeUnit::kDuration) return elapsed(now, whole) >= moment.value();
  return now.get(moment.unit()) >= moment;
}

}  // namespace

NamedTensors lasting_tensors(const State& state) {
  NamedTensors tensors;
  for (const auto& view : state.views) tensors.emplace_back(view.name, view.tensor.detach());
  for (const auto& named : state.buffers) tensors.emplace_back(named.name, named.buffer->tensor);
  return tensors;
}

NamedTensors copies_of(const NamedTensors& named) {
  NamedTensors copies;
  for (const auto& [name, tensor] : named) copies.emplace_back(name, tensor.clone());
  return copies;
}

std::vector<at::Tensor> tensors_of(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

void copy_tensors(const NamedTensors& to, const NamedTensors& from) {
  TUTTI_ASSERT(to.size() == from.size(), "as many tensors");
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < to.size(); ++i) to[i].second.copy_(from[i].second);
}

bool has_passed(const Time& moment, const State& state) {
  return has_passed(moment, state.timestamp, state.max_duration);
}

void warn_of_late_start(const Algorithm& algorithm, const std::string& key, const Time& start, Event update,
                        const State& state) {
  const Time& whole = state.max_duration;
  const bool is_counted = whole.unit() == TimeUnit::kEpoch || whole.unit() == TimeUnit::kBatch;
  const bool is_known = start.unit() == TimeUnit::kEpoch || start.unit() == TimeUnit::kBatch ||
                        start.unit() == TimeUnit::kDuration;
  if (!is_counted || !is_known || state.dataloader_len == 0) return;
  Timestamp last;
  last.batch = whole.count() * (whole.unit() == TimeUnit::kEpoch ? state.dataloader_len : 1);
  last.epoch = (last.batch - (update == Event::kBatchEnd ? 1 : 0)) / state.dataloader_len;
  if (update == Event::kEpochEnd) last.batch = last.epoch * state.dataloader_len;
  if (last.batch == 0 || !has_passed(start, last, whole))
    state.warn_on_rank_zero(algorithm.name() + " has no effect: a training of " + whole.text() + " has no " +
                            name(update) + " from " + key + " = " + start.text() + " on");
}

}  // namespace tutti

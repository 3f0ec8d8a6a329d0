#include "algorithms/loop/lasting_tensors.h"

#include <ATen/core/grad_mode.h>

#include "runtime/error.h"

namespace tutti {

NamedTensors lasting_tensors(const State& state) {
  NamedTensors found;
  for (const auto& view : state.views) found.emplace_back(view.name, view.tensor.detach());
  for (const auto& one : state.buffers) found.emplace_back(one.name, one.buffer->tensor);
  return found;
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
  const Time now =
      moment.unit() == TimeUnit::kDuration ? state.elapsed_duration() : state.timestamp.get(moment.unit());
  return now >= moment;
}

}  // namespace tutti

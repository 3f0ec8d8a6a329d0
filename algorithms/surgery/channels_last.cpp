#include "algorithms/surgery/channels_last.h"

#include <ATen/core/grad_mode.h>

#include "algorithms/surgery/effect.h"
#include "training/state.h"

namespace tutti {
namespace {

// Optimizers and graphs that hold the tensor have it in its new layout too.
bool lay_out(at::Tensor& tensor) {
  if (tensor.dim() != 4) return false;
  const auto given = tensor.strides().vec();
  tensor.set_data(
      tensor.to(tensor.options(), /*non_blocking=*/false, /*copy=*/false, at::MemoryFormat::ChannelsLast));
  return tensor.strides() != given;
}

}  // namespace

int apply_channels_last(Layer& model) {
  const at::NoGradGuard no_grad;
  int changed = 0;
  for (const auto& named : parameters(model)) changed += lay_out(named.parameter->tensor);
  for (const auto& named : buffers(model)) changed += lay_out(named.buffer->tensor);
  return changed;
}

void ChannelsLast::apply(Event, State& state, Logger&) {
  warn_without_effect(state, apply_channels_last(*state.model), name(),
                      "parameter of 4 dimensions, as of Conv2d");
}

AlgorithmPtr ChannelsLastOptions::make(const Setting&) const { return std::make_shared<ChannelsLast>(); }

}  // namespace tutti

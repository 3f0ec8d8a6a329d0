#include "algorithms/loop/sam.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>

#include <utility>

#include "tensors/elementwise.h"
#include "tensors/norms.h"
#include "training/state.h"

namespace tutti {

void SAM::apply(Event, State& state, Logger&) {
  state.closure_step = [this, &state](Closure& closure) {
    if ((state.timestamp.batch + 1) % options_.interval == 0) closure.pass([&] { climb(state); });
    closure.step();
  };
}

void SAM::climb(State& state) const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> weights, gradients;
  for (const auto& view : state.views) {
    if (!view.grad.defined()) continue;
    weights.push_back(view.tensor.detach());
    gradients.push_back(view.grad);
  }
  if (weights.empty()) return;
  const double norm = total_norm(gradients, /*sum_over_ranks=*/{});
  const double scale = options_.rho / (norm / state.grad_scale + options_.epsilon) / state.grad_scale;
  Elementwise::Lists lists{weights, gradients};
  Elementwise(lists.size(), weights).run(std::move(lists), [&](const Elementwise::Lists& some, const auto&) {
    at::_foreach_add_(some[0], some[1], scale);
  });
}

}  // namespace tutti

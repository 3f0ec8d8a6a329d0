#include "algorithms/loop/sam.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>

#include <utility>
#include <vector>

#include "tensors/elementwise.h"
#include "tensors/norms.h"
#include "training/state.h"

namespace tutti {
namespace {

// Adds the gradients to the weights, `slope` times.
void climb(State& state, double slope) {
  std::vector<at::Tensor> weights, gradients;
  for (const auto& view : state.views) {
    if (!view.grad.defined()) continue;
    weights.push_back(view.tensor.detach());
    gradients.push_back(view.grad);
  }
  if (weights.empty()) return;
  const at::NoGradGuard no_grad;
  Elementwise::Lists lists{weights, gradients};
  Elementwise(lists.size(), weights).run(std::move(lists), [&](const Elementwise::Lists& some, const auto&) {
    at::_foreach_add_(some[0], some[1], slope);
  });
}

}  // namespace

void SAM::apply(Event, State& state, Logger&) {
  state.closure_step = [this, &state](Closure& closure) {
    if ((state.timestamp.batch + 1) % options_.interval == 0)
      closure.pass([&state, slope = slope(state)] { climb(state, slope); });
    closure.step();
  };
}

// The norm is a sum over ranks, so it is taken before the pass.
double SAM::slope(const State& state) const {
  std::vector<at::Tensor> gradients;
  for (const auto& view : state.views)
    if (view.grad.defined()) gradients.push_back(view.part_of_sum(view.grad));
  const double norm = gradients.empty() ? 0.0 : total_norm(gradients, state.sum_over_shards());
  return options_.rho / (norm / state.grad_scale + options_.epsilon) / state.grad_scale;
}

AlgorithmPtr SAMOptions::make(const Setting&) const { return std::make_shared<SAM>(*this); }

}  // namespace tutti

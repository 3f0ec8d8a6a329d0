#pragma once

#include <ATen/ATen.h>

#include "training/engine/algorithm.h"
#include "training/state.h"

namespace tutti {

// Sharpness-aware minimisation as in Foret et al. (2021): every `interval`th step takes the gradients that
// are found `rho` further up the slope.
class SecondPass final : public Algorithm {
 public:
  explicit SecondPass(double rho, int interval = 1) : rho_(rho), interval_(interval) {}
  std::string name() const override { return "SecondPass"; }
  Needs needs() const override { return {.closure = true}; }
  bool match(Event event, const State&) const override { return event == Event::kAfterLoad; }
  void apply(Event, State& state, Logger&) override {
    state.closure_step = [this, &state](Closure& closure) {
      if ((state.timestamp.batch + 1) % interval_ == 0) closure.pass([&] { climb(state); });
      closure.step();
    };
  }

 private:
  void climb(State& state) const {
    double squares = 0;
    for (const auto& view : state.views)
      if (view.grad.defined()) squares += (view.grad / state.grad_scale).square().sum().item<double>();
    for (auto& view : state.views)
      if (view.grad.defined())
        view.tensor.add_(view.grad / state.grad_scale, rho_ / (std::sqrt(squares) + 1e-12));
  }

  double rho_;
  int interval_;
};

}  // namespace tutti

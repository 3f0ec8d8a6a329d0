#pragma once

#include <ATen/core/Tensor.h>
#include <tutti/training/engine/algorithm.h>
#include <tutti/training/state.h>

#include <numeric>
#include <vector>

// Takes the mean of each unit out of its gradient, in place; a unit is a slice of dim 0. Parameters of fewer
// than two dims, and those without a gradient, are left alone. Yong et al. 2020, arXiv:2004.01461.
inline void apply_gradient_centralization(const std::vector<tutti::ParamView>& views) {
  for (const tutti::ParamView& view : views) {
    if (!view.grad.defined() || view.grad.dim() < 2) continue;
    std::vector<int64_t> inner(static_cast<std::size_t>(view.grad.dim() - 1));
    std::iota(inner.begin(), inner.end(), 1);
    view.grad.sub_(view.grad.mean(inner, /*keepdim=*/true));
  }
}

// Centralizes the gradients of every step, once they are those of the whole global batch.
class GradientCentralization final : public tutti::Algorithm {
 public:
  std::string name() const override { return "GradientCentralization"; }
  bool match(tutti::Event event, const tutti::State&) const override {
    return event == tutti::Event::kAfterTrainBatch;
  }
  void apply(tutti::Event, tutti::State& state, tutti::Logger&) override {
    apply_gradient_centralization(state.views);
  }
};

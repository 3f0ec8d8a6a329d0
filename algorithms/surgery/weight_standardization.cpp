#include "algorithms/surgery/weight_standardization.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/var_mean.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "algorithms/surgery/effect.h"
#include "data/dataset.h"
#include "models/layers/conv.h"
#include "models/layers/lent_zeros.h"
#include "tensors/memory/torch_error.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr double kEpsilon = 1e-10;  // added to the variance

std::vector<Convolution*> registered(Layer& model) {
  std::vector<Convolution*> convolutions;
  for (const auto& [name, layer] : layers(model))
    if (auto* convolution = dynamic_cast<Convolution*>(layer)) convolutions.push_back(convolution);
  return convolutions;
}

// A model in which nothing is computed but which layer follows on which: convolutions note that they are
// called. The end restores the model.
class Traced {
 public:
  Traced(Layer& model, const Device& device) : model_(model), zeros_(model, device) {
    for (Convolution* convolution : registered(model)) {
      rules_.emplace_back(convolution, convolution->weight_rule());
      convolution->set_weight_rule([this, convolution](const at::Tensor& weight) {
        if (std::ranges::find(called_, convolution) == called_.end()) called_.push_back(convolution);
        return weight;
      });
    }
    set_context(model, &evaluating_);
  }
  ~Traced() {
    for (auto& [convolution, rule] : rules_) convolution->set_weight_rule(rule);
    set_context(model_, nullptr);
  }
  Traced(const Traced&) = delete;

  const std::vector<Convolution*>& called_by(const TensorTree& example) {
    const at::NoGradGuard no_grad;
    model_.forward(example);
    return called_;
  }

 private:
  Layer& model_;
  const LentZeros zeros_;
  const ForwardContext evaluating_{.training = false};
  std::vector<std::pair<Convolution*, Convolution::WeightRule>> rules_;
  std::vector<Convolution*> called_;
};

// One sample of the run's data, if it matters which convolutions are last.
TensorTree example_of(const State& state, int64_t ignored) {
  if (ignored == 0 || state.dataset == nullptr) return {};
  const int64_t first = 0;
  return state.device.take(state.dataset->get({&first, 1}, {state.seed}));
}

}  // namespace

at::Tensor standardized(const at::Tensor& weight) {
  std::vector<int64_t> inner(static_cast<std::size_t>(weight.dim() - 1));
  std::iota(inner.begin(), inner.end(), 1);
  const auto [variance, mean] = at::var_mean(weight, inner, /*unbiased=*/false, /*keepdim=*/true);
  return (weight - mean) / (variance + kEpsilon).sqrt();
}

int apply_weight_standardization(Layer& model, int64_t n_last_layers_ignore, const TensorTree& example) {
  const auto order =
      example.empty() ? registered(model) : Traced(model, Device::of(example)).called_by(example);
  const auto kept = std::min(n_last_layers_ignore, static_cast<int64_t>(order.size()));
  int changed = 0;
  for (Convolution* convolution : std::vector(order.begin(), order.end() - kept)) {
    if (convolution->weight_rule()) continue;
    convolution->set_weight_rule(standardized);
    convolution->weight().name = "parametrizations.weight.original";
    ++changed;
  }
  return changed;
}

void WeightStandardization::apply(Event, State& state, Logger&) {
  int changed = 0;
  try {
    changed = apply_weight_standardization(*state.model, ignored_, example_of(state, ignored_));
  } catch (const std::exception& error) {
    state.warn_on_rank_zero(
        "WeightStandardization takes the layers that are registered last for the last ones, since " +
        std::string(state.model->kind()) + " could not be run: " + one_line(error));
    changed = apply_weight_standardization(*state.model, ignored_);
  }
  warn_without_effect(state, changed, name(), "convolution to standardize");
}

AlgorithmPtr WeightStandardizationOptions::make(const Setting&) const {
  return std::make_shared<WeightStandardization>(n_last_layers_ignore);
}

}  // namespace tutti

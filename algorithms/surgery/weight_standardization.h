#pragma once

#include "algorithms/surgery/options.h"
#include "models/layers/layer.h"
#include "training/engine/algorithm.h"

namespace tutti {

// The weight with mean 0 and variance 1 in each output channel: (w - mean) / sqrt(variance + 1e-10) over all
// dims but 0, with the population variance. Qiao et al. 2019, arXiv:1903.10520.
at::Tensor standardized(const at::Tensor& weight);

// Makes every Convolution (models/layers/conv.h) use its standardized weight, except the last
// `n_last_layers_ignore` and convolutions that do so already. The original weight is trained and saved, and
// now called "parametrizations.weight.original", as in torch. Returns the number of changed convolutions.
//
// The last layers are the last in the order of calls when the model runs once on the input `example`. Without
// an example the order of registration counts. composer.functional.apply_weight_standardization.
int apply_weight_standardization(Layer& model, int64_t n_last_layers_ignore = 0,
                                 const TensorTree& example = {});

// apply_weight_standardization at INIT. composer.algorithms.WeightStandardization.
class WeightStandardization final : public Algorithm {
 public:
  explicit WeightStandardization(int64_t n_last_layers_ignore = 0) : ignored_(n_last_layers_ignore) {}
  std::string name() const override { return "WeightStandardization"; }
  // Factorize makes other convolutions.
  Needs needs() const override { return {.after = {"Factorize"}, .required_on_load = true}; }
  bool match(Event event, const State&) const override { return event == Event::kInit; }
  void apply(Event event, State& state, Logger& logger) override;

 private:
  int64_t ignored_;
};

}  // namespace tutti

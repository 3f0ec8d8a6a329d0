#pragma once

#include <memory>

#include "algorithms/surgery/options.h"
#include "models/layers/conv.h"
#include "training/engine/algorithm.h"

namespace tutti {

// Scales each channel of [N, C, H, W] by a factor computed from the means of all channels: x * sigmoid(W2
// relu(W1 mean(x))). Hu et al. 2017, arXiv:1709.01507; composer's SqueezeExcite2d, with its names.
class SqueezeExcite2d final : public Layer {
 public:
  // `latent_channels`: rows of W1; below 1 a fraction of num_features. Throws UserError if the result is 0.
  explicit SqueezeExcite2d(int64_t num_features, double latent_channels = 0.125);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "SqueezeExcite2d"; }

 private:
  Slot& pool_and_mlp_;
};

// A convolution ("conv") and a SqueezeExcite2d of its output ("se"); composer's SqueezeExciteConv2d.
class SqueezeExciteConv2d final : public Layer {
 public:
  explicit SqueezeExciteConv2d(const std::shared_ptr<Conv2d>& conv, double latent_channels = 0.125);
  TensorTree forward(const TensorTree& input) override { return se_(conv_(input)); }
  const char* kind() const override { return "SqueezeExciteConv2d"; }

 private:
  Slot& conv_;
  Slot& se_;
};

// Puts a SqueezeExcite2d behind every Conv2d that has at least `min_channels` input and output channels, and
// no SqueezeExcite2d yet. Returns the number of convolutions. Call materialise afterwards: the new layers
// have new weights. Throws UserError as SqueezeExcite2d. composer.functional.apply_squeeze_excite.
int apply_squeeze_excite(Layer& model, double latent_channels = 64, int64_t min_channels = 128);

// apply_squeeze_excite at INIT. composer.algorithms.SqueezeExcite.
class SqueezeExcite final : public Algorithm {
 public:
  explicit SqueezeExcite(double latent_channels = 64, int64_t min_channels = 128)
      : latent_channels_(latent_channels), min_channels_(min_channels) {}
  std::string name() const override { return "SqueezeExcite"; }
  Needs needs() const override { return {.required_on_load = true}; }
  bool match(Event event, const State&) const override { return event == Event::kInit; }
  void apply(Event event, State& state, Logger& logger) override;

 private:
  double latent_channels_;
  int64_t min_channels_;
};

}  // namespace tutti

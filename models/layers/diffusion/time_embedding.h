#pragma once

#include <cstdint>

#include "models/layers/layer.h"

namespace tutti {

// Sines and cosines of timesteps [N], int64, as [N, features] of float32: diffusers' Timesteps.
// `flip_sin_to_cos`: the cosines come first. `freq_shift`: taken from the number of frequencies.
at::Tensor sinusoids(const at::Tensor& timesteps, int64_t features, bool flip_sin_to_cos, double freq_shift);

// Two linear layers with an activation between: diffusers' TimestepEmbedding.
class TimestepEmbedding final : public Layer {
 public:
  TimestepEmbedding(int64_t in, int64_t out);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "TimestepEmbedding"; }

 private:
  Slot& linear_1_;
  Slot& act_;
  Slot& linear_2_;
};

}  // namespace tutti

#include "models/layers/diffusion/time_embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>

#include <cmath>
#include <memory>

#include "models/layers/activation.h"
#include "models/layers/linear.h"

namespace tutti {

at::Tensor sinusoids(const at::Tensor& timesteps, int64_t features, bool flip_sin_to_cos, double freq_shift) {
  constexpr double kLongestPeriod = 10000;
  const int64_t half = features / 2;
  const at::Tensor places = at::arange(half, timesteps.options().dtype(at::kFloat));
  const at::Tensor frequencies =
      (places * -std::log(kLongestPeriod) / (static_cast<double>(half) - freq_shift)).exp();
  const at::Tensor angles = timesteps.unsqueeze(1).to(at::kFloat) * frequencies;
  const at::Tensor both =
      flip_sin_to_cos ? at::cat({angles.cos(), angles.sin()}, 1) : at::cat({angles.sin(), angles.cos()}, 1);
  return features % 2 == 0 ? both : at::constant_pad_nd(both, {0, 1});
}

TimestepEmbedding::TimestepEmbedding(int64_t in, int64_t out)
    : linear_1_(add_slot("linear_1", std::make_shared<Linear>(in, out))),
      act_(add_slot("act", std::make_shared<SiLU>())),
      linear_2_(add_slot("linear_2", std::make_shared<Linear>(out, out))) {}

TensorTree TimestepEmbedding::forward(const TensorTree& input) { return linear_2_(act_(linear_1_(input))); }

}  // namespace tutti

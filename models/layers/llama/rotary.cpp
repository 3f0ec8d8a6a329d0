#include "models/layers/llama/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr double kTurn = 2.0 * std::numbers::pi;

double mscale_of(double factor, double mscale = 1.0) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

double attention_factor_of(const RotaryOptions& o) {
  if (o.type != "yarn") return 1.0;
  if (o.attention_factor) return *o.attention_factor;
  if (o.mscale.value_or(0.0) != 0.0 && o.mscale_all_dim.value_or(0.0) != 0.0)
    return mscale_of(o.factor, *o.mscale) / mscale_of(o.factor, *o.mscale_all_dim);
  return mscale_of(o.factor);
}

// theta^(2 i / features)
at::Tensor wavelengths(double theta, int64_t features) {
  const at::Tensor exponents = at::arange(0, features, 2, at::kFloat) / static_cast<double>(features);
  return at::pow(at::Scalar(theta), exponents);
}

double dynamic_theta(const RotaryOptions& o, int64_t length) {
  const auto most = static_cast<double>(o.max_positions), features = static_cast<double>(o.features);
  const double ratio = std::max(static_cast<double>(length), most) / most;
  return o.theta * std::pow(o.factor * ratio - (o.factor - 1.0), features / (features - 2.0));
}

// High frequencies stay, low ones are divided by the factor, and those between are in between.
at::Tensor llama3_frequencies(const RotaryOptions& o, const at::Tensor& plain) {
  const auto old = static_cast<double>(o.original_max_positions);
  const at::Tensor lengths = kTurn / plain;
  const at::Tensor smooth = (old / lengths - o.low_freq_factor) / (o.high_freq_factor - o.low_freq_factor);
  const at::Tensor between = (1.0 - smooth) * plain / o.factor + smooth * plain;
  const at::Tensor scaled = at::where(lengths > old / o.low_freq_factor, plain / o.factor, between);
  return at::where(lengths < old / o.high_freq_factor, plain, scaled);
}

// The dimension whose frequency turns so often in the original length.
double dimension_of(double rotations, const RotaryOptions& o) {
  return static_cast<double>(o.features) *
         std::log(static_cast<double>(o.original_max_positions) / (rotations * kTurn)) /
         (2.0 * std::log(o.theta));
}

at::Tensor yarn_frequencies(const RotaryOptions& o, const at::Tensor& plain) {
  double low = dimension_of(o.beta_fast, o), high = dimension_of(o.beta_slow, o);
  if (o.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(o.features - 1));
  if (low == high) high += 0.001;
  const at::Tensor places = at::arange(o.features / 2, at::kFloat);
  const at::Tensor kept = 1.0 - at::clamp((places - low) / (high - low), 0.0, 1.0);
  return plain / o.factor * (1.0 - kept) + plain * kept;
}

}  // namespace

at::Tensor rotary_frequencies(const RotaryOptions& o, int64_t length) {
  const double theta = o.type == "dynamic" ? dynamic_theta(o, length) : o.theta;
  const at::Tensor plain = wavelengths(theta, o.features).reciprocal();
  if (o.type == "linear") return plain / o.factor;
  if (o.type == "llama3") return llama3_frequencies(o, plain);
  if (o.type == "yarn") return yarn_frequencies(o, plain);
  return plain;
}

RotaryEmbedding::RotaryEmbedding(RotaryOptions options)
    : options_(std::move(options)),
      attention_factor_(attention_factor_of(options_)),
      frequencies_(add_buffer(
          "inv_freq", {options_.features / 2},
          [o = options_](at::Tensor& to, const at::Generator&) { to.copy_(rotary_frequencies(o)); },
          at::kFloat,
          /*persistent=*/false)) {
  TUTTI_ASSERT(options_.features % 2 == 0, "rotary positions of an odd number of features");
}

TensorTree RotaryEmbedding::forward(const TensorTree& input) {
  const at::Tensor& positions = input.tensor();
  at::Tensor frequencies = frequencies_.tensor;
  if (options_.type == "dynamic" && positions.size(-1) > options_.max_positions) {
    const int64_t length = positions.max().item<int64_t>() + 1;
    frequencies = rotary_frequencies(options_, length).to(frequencies.device());
  }
  const at::Tensor angles = positions.to(at::kFloat).unsqueeze(-1) * frequencies;
  at::Tensor cos = at::cos(angles), sin = at::sin(angles);
  if (attention_factor_ != 1.0) {
    cos.mul_(attention_factor_);
    sin.mul_(attention_factor_);
  }
  return TensorTree::Children{{"cos", cos}, {"sin", sin}};
}

}  // namespace tutti

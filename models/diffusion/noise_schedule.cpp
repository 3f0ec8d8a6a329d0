#include "models/diffusion/noise_schedule.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/error.h"
#include "tensors/device.h"

namespace tutti {
namespace {

// Nichol and Dhariwal, 2021, equation 17.
at::Tensor squared_cosine_betas(int64_t count) {
  constexpr double kLargest = 0.999, kOffset = 0.008;
  const auto bar = [&](int64_t i) {
    const double t = static_cast<double>(i) / static_cast<double>(count);
    return std::pow(std::cos((t + kOffset) / (1 + kOffset) * std::numbers::pi / 2), 2);
  };
  std::vector<double> betas;
  for (int64_t i = 0; i < count; ++i) betas.push_back(std::min(1 - bar(i + 1) / bar(i), kLargest));
  return at::tensor(betas, at::kDouble).to(at::kFloat);
}

at::Tensor betas_of(const NoiseOptions& o) {
  const auto from_to = [&](double first, double last) {
    return at::linspace(first, last, o.num_train_timesteps, at::kFloat);
  };
  switch (o.beta_schedule) {
    case BetaSchedule::kLinear:
      return from_to(o.beta_start, o.beta_end);
    case BetaSchedule::kScaledLinear:
      return from_to(std::sqrt(o.beta_start), std::sqrt(o.beta_end)).square();
    case BetaSchedule::kSquaredCosine:
      return squared_cosine_betas(o.num_train_timesteps);
  }
  TUTTI_ASSERT(false, "no such schedule");
}

// A factor for each sample, for [N, ...] on its device.
at::Tensor factors(const at::Tensor& numbers, const at::Tensor& images) {
  const std::vector<int64_t> ones(static_cast<std::size_t>(images.dim() - 1), 1);
  std::vector<int64_t> shape{numbers.size(0)};
  shape.insert(shape.end(), ones.begin(), ones.end());
  return copy_to_device(numbers.view(shape), images.device());
}

}  // namespace

NoiseSchedule::NoiseSchedule(const NoiseOptions& options)
    : options_(options), alphas_(at::cumprod(1.0 - betas_of(options), 0)) {}

at::Tensor NoiseSchedule::add_noise(const at::Tensor& images, const at::Tensor& noise,
                                    const at::Tensor& timesteps) const {
  const at::Tensor alphas = alphas_.index_select(0, timesteps);
  return factors(alphas.sqrt(), images) * images + factors((1 - alphas).sqrt(), images) * noise;
}

at::Tensor NoiseSchedule::target(const at::Tensor& images, const at::Tensor& noise,
                                 const at::Tensor& timesteps) const {
  if (options_.prediction_type == PredictionType::kEpsilon) return noise;
  if (options_.prediction_type == PredictionType::kSample) return images;
  const at::Tensor alphas = alphas_.index_select(0, timesteps);
  return factors(alphas.sqrt(), images) * noise - factors((1 - alphas).sqrt(), images) * images;
}

std::vector<NoiseSchedule::Step> NoiseSchedule::steps(int64_t count) const {
  TUTTI_ASSERT(count >= 1 && count <= timesteps(), "more steps than timesteps");
  const int64_t apart = timesteps() / count;
  std::vector<Step> all;
  for (int64_t i = count - 1; i >= 0; --i) all.push_back({i * apart, i == 0 ? -1 : (i - 1) * apart});
  return all;
}

float NoiseSchedule::alpha(int64_t t) const { return t < 0 ? 1.0F : alphas_.const_data_ptr<float>()[t]; }

at::Tensor NoiseSchedule::predicted_image(const Step& step, const at::Tensor& prediction,
                                          const at::Tensor& images) const {
  const float root = std::sqrt(alpha(step.t)), noise_factor = std::sqrt(1 - alpha(step.t));
  at::Tensor image = prediction;
  if (options_.prediction_type == PredictionType::kEpsilon)
    image = (images - prediction * noise_factor) / root;
  if (options_.prediction_type == PredictionType::kVelocity)
    image = images * root - prediction * noise_factor;
  if (!options_.clip_sample) return image;
  return image.clamp(-options_.clip_sample_range, options_.clip_sample_range);
}

// Of the prediction before it is clipped, as diffusers does.
at::Tensor NoiseSchedule::predicted_noise(const Step& step, const at::Tensor& prediction,
                                          const at::Tensor& images) const {
  const float root = std::sqrt(alpha(step.t)), noise_factor = std::sqrt(1 - alpha(step.t));
  if (options_.prediction_type == PredictionType::kEpsilon) return prediction;
  if (options_.prediction_type == PredictionType::kSample) return (images - prediction * root) / noise_factor;
  return prediction * root + images * noise_factor;
}

// Equation 7 of Ho et al.
at::Tensor NoiseSchedule::ddpm_step(const Step& step, const at::Tensor& prediction, const at::Tensor& images,
                                    const at::Tensor& noise) const {
  const float now = alpha(step.t), then = alpha(step.to);
  const float alpha_of_step = now / then, beta = 1 - alpha_of_step;
  const float image_factor = std::sqrt(then) * beta / (1 - now);
  const float now_factor = std::sqrt(alpha_of_step) * (1 - then) / (1 - now);
  const at::Tensor mean = predicted_image(step, prediction, images) * image_factor + images * now_factor;
  if (step.t == 0) return mean;
  constexpr float kSmallest = 1e-20F;
  const float small = std::max((1 - then) / (1 - now) * beta, kSmallest);
  const float variance = options_.variance_type == VarianceType::kFixedSmall ? small : beta;
  return mean + noise * std::sqrt(variance);
}

at::Tensor NoiseSchedule::ddim_step(const Step& step, const at::Tensor& prediction,
                                    const at::Tensor& images) const {
  const float then = alpha(step.to);
  return predicted_image(step, prediction, images) * std::sqrt(then) +
         predicted_noise(step, prediction, images) * std::sqrt(1 - then);
}

}  // namespace tutti

#include "models/diffusion/sampler.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/util/accumulate.h>

#include <algorithm>

#include "models/diffusion/drawn_noise.h"
#include "tensors/device.h"

namespace tutti {
namespace {

constexpr int64_t kMostAtOnce = 64;
constexpr int64_t kNumbersAtOnce = int64_t{1} << 20;

// The noise of images from number `first` on: that of the beginning, and that of each step.
class NumberedNoise {
 public:
  NumberedNoise(uint64_t seed, int64_t first, int64_t count, const Shape& shape, c10::Device where)
      : seed_(seed), first_(first), sizes_{count}, where_(where) {
    sizes_.insert(sizes_.end(), shape.begin(), shape.end());
  }

  at::Tensor draw(uint64_t word) const {
    const at::Tensor noise = at::empty(sizes_, at::kFloat);
    for (int64_t i = 0; i < sizes_.front(); ++i)
      draw_normal(RandomKey(seed_, "image").fold_in(static_cast<uint64_t>(first_ + i)).fold_in(word),
                  noise.select(0, i));
    return copy_to_device(noise, where_);
  }

 private:
  uint64_t seed_;
  int64_t first_;
  Shape sizes_;
  c10::Device where_;
};

}  // namespace

at::Tensor denoised(const NoiseSchedule& schedule, const SamplingOptions& options, const at::Tensor& noise,
                    const Predict& predict,
                    const std::function<at::Tensor(const NoiseSchedule::Step&)>& step_noise) {
  at::Tensor images = noise;
  for (const NoiseSchedule::Step& step : schedule.steps(options.steps)) {
    const at::Tensor timesteps = at::full({images.size(0)}, step.t, images.options().dtype(at::kLong));
    const at::Tensor prediction = predict(images, timesteps).to(at::kFloat);
    if (options.sampler == SamplerKind::kDdim)
      images = schedule.ddim_step(step, prediction, images);
    else
      images = schedule.ddpm_step(step, prediction, images, step.to < 0 ? at::Tensor() : step_noise(step));
  }
  return images;
}

at::Tensor sampled(const NoiseSchedule& schedule, const SamplingOptions& options, const Shape& shape,
                   c10::Device where, const Predict& predict) {
  const at::NoGradGuard no_grad;
  const int64_t size = c10::multiply_integers(shape);
  const int64_t at_once = std::clamp<int64_t>(kNumbersAtOnce / size, 1, kMostAtOnce);
  std::vector<at::Tensor> images;
  for (int64_t first = 0; first < options.samples; first += at_once) {
    const NumberedNoise noise(options.seed, first, std::min(at_once, options.samples - first), shape, where);
    const auto step_noise = [&](const NoiseSchedule::Step& step) {
      return noise.draw(static_cast<uint64_t>(step.t));
    };
    const auto beginning = static_cast<uint64_t>(schedule.timesteps());
    images.push_back(denoised(schedule, options, noise.draw(beginning), predict, step_noise).cpu());
  }
  return at::cat(images);
}

}  // namespace tutti

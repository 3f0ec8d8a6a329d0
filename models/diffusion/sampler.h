#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "models/diffusion/noise_schedule.h"

namespace tutti {

enum class SamplerKind { kDdpm, kDdim };

struct SamplingOptions {
  SamplerKind sampler = SamplerKind::kDdim;
  int64_t steps = 50;  // num_inference_steps; at most the schedule's timesteps
  int64_t samples = 64;
  uint64_t seed = 0;
};

// The network's prediction for noisy images [N, C, H, W] and their timesteps, int64 [N].
using Predict = std::function<at::Tensor(const at::Tensor& images, const at::Tensor& timesteps)>;

// Images [N, C, H, W] that the network makes of `noise`, float32, on its device. `step_noise`: the noise that
// a step of ddpm adds, shaped as the images; not called for the last.
at::Tensor denoised(const NoiseSchedule& schedule, const SamplingOptions& options, const at::Tensor& noise,
                    const Predict& predict,
                    const std::function<at::Tensor(const NoiseSchedule::Step&)>& step_noise);

// New images [samples, C, H, W] on the host, about [-1, 1]; `shape`: of an image. An image's noise depends on
// the seed and the image's number alone. Several images are made at once, as many as suit their size.
at::Tensor sampled(const NoiseSchedule& schedule, const SamplingOptions& options, const Shape& shape,
                   c10::Device where, const Predict& predict);

}  // namespace tutti

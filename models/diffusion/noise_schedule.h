#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/diffusion/noise_options.h"

namespace tutti {

// The noise of a diffusion model (Ho et al. 2020, arXiv:2006.11239): at timestep t an image x, scaled to [-1,
// 1], has become sqrt(a[t]) x + sqrt(1 - a[t]) noise. Numbers as of diffusers' DDPMScheduler and
// DDIMScheduler with their defaults. Images are [N, C, H, W], timesteps int64 [N] of the host.
class NoiseSchedule {
 public:
  explicit NoiseSchedule(const NoiseOptions& options);

  int64_t timesteps() const { return options_.num_train_timesteps; }
  const at::Tensor& alphas_cumprod() const { return alphas_; }  // a: float32 [timesteps]

  at::Tensor add_noise(const at::Tensor& images, const at::Tensor& noise, const at::Tensor& timesteps) const;
  // The model's target: the noise, the image, or the velocity sqrt(a) noise - sqrt(1 - a) x.
  at::Tensor target(const at::Tensor& images, const at::Tensor& noise, const at::Tensor& timesteps) const;

  // A step of sampling, from timestep `t` to an earlier timestep; -1: no noise any more.
  struct Step {
    int64_t t = 0;
    int64_t to = -1;
  };
  // Evenly spaced: diffusers' "leading". `count` is at most timesteps().
  std::vector<Step> steps(int64_t count) const;

  // The images at step.to, from the images at step.t and the model's prediction. `noise`: normal, as the
  // images; unused in the last step. DDIM is Song et al. 2021, arXiv:2010.02502, with eta = 0.
  at::Tensor ddpm_step(const Step& step, const at::Tensor& prediction, const at::Tensor& images,
                       const at::Tensor& noise) const;
  at::Tensor ddim_step(const Step& step, const at::Tensor& prediction, const at::Tensor& images) const;

 private:
  float alpha(int64_t t) const;  // 1 for -1
  at::Tensor predicted_image(const Step& step, const at::Tensor& prediction, const at::Tensor& images) const;
  at::Tensor predicted_noise(const Step& step, const at::Tensor& prediction, const at::Tensor& images) const;

  NoiseOptions options_;
  at::Tensor alphas_;
};

}  // namespace tutti

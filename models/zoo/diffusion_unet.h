#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/diffusion/drawn_noise.h"
#include "models/diffusion/noise_schedule.h"
#include "models/model.h"
#include "models/zoo/options.h"

namespace tutti {

// A diffusion model: diffusers' UNet2DModel, with its names and initial values, trained to predict the noise
// added to an image. Input: images batch["input"] [N, in_channels, sample_size, sample_size], scaled to [-1,
// 1]; no other arrays. Outputs: a tree of the "prediction" and its "target".
//
// Each sample has a timestep and noise of its own. In training, both depend on the seed, the step and the
// sample's place in the global batch; in evaluations and predictions on the image alone.
class DiffusionUnet final : public Model {
 public:
  explicit DiffusionUnet(const DiffusionUnetOptions& options);

  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "DiffusionUnet"; }
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;  // mean squared error
  at::Tensor losses(const Outputs& outputs, const Batch& batch) override;
  void update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) override;

  // The network: of noisy images and their timesteps, int64 [N] on the images' device.
  at::Tensor predict(const at::Tensor& images, const at::Tensor& timesteps);

  const NoiseSchedule& schedule() const { return schedule_; }
  const DiffusionUnetOptions& options() const { return options_; }

 private:
  DrawnNoise drawn_for(const at::Tensor& images) const;

  DiffusionUnetOptions options_;
  NoiseSchedule schedule_;
  Slot& unet_;
};

}  // namespace tutti

#pragma once

#include <string>

#include "recipe/setting.h"

// Configurations of diffusers' UNet2DModel and DDPMScheduler, and the zoo's kind diffusion_unet. Free of
// libtorch.
namespace tutti {

// True for a config.json of diffusers'.
bool is_of_diffusers(const Setting& config);

// As zoo_section (models/hub/config.h), for the config.json of a UNet2DModel.
Setting::Table unet_section(const Setting& config, const Setting& asked);
// Keys of [model] for a scheduler_config.json.
Setting::Table noise_section(const Setting& scheduler);

// The configurations of a resolved [model] section: of the network, the scheduler, and the model_index.json
// of a DDPMPipeline of network and scheduler. `channels`: of the images.
Setting::Table unet_config(const Setting& model, int64_t channels);
Setting::Table scheduler_config(const Setting& model);
Setting::Table pipeline_config();

}  // namespace tutti

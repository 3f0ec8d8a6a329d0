#include "models/hub/diffusers.h"

#include "models/diffusion/noise_options.h"
#include "models/hub/values.h"
#include "models/zoo/options.h"

namespace tutti {
namespace {

using Table = Setting::Table;

constexpr const char* kVersion = "0.42.1";  // of diffusers whose configurations these are
constexpr const char* kUnetKeys[] = {"sample_size",
                                     "in_channels",
                                     "center_input_sample",
                                     "flip_sin_to_cos",
                                     "freq_shift",
                                     "down_block_types",
                                     "up_block_types",
                                     "block_out_channels",
                                     "layers_per_block",
                                     "mid_block_scale_factor",
                                     "downsample_padding",
                                     "act_fn",
                                     "attention_head_dim",
                                     "norm_num_groups",
                                     "norm_eps",
                                     "resnet_time_scale_shift",
                                     "add_attention"};
constexpr const char* kNoiseKeys[] = {"num_train_timesteps", "beta_start",       "beta_end",
                                      "beta_schedule",       "prediction_type",  "variance_type",
                                      "clip_sample",         "clip_sample_range"};

// What only a value that is absent or null leaves to the zoo's model.
void require_none(const Setting& config, const char* key) {
  if (config.has(key)) config.at(key).fail("tutti's model has none");
}

}  // namespace

bool is_of_diffusers(const Setting& config) {
  return config.has("_class_name") && config.at("_class_name").is_text();
}

Setting::Table unet_section(const Setting& config, const Setting& asked) {
  const Setting& name = config.at("_class_name");
  if (name.text() != "UNet2DModel") name.fail("of diffusers' models tutti has UNet2DModel");
  Table section;
  add_value(section, "kind", std::string("diffusion_unet"));
  for (const char* key : kUnetKeys) copy_value(section, config, key, key);
  if (config.find("attention_head_dim") && !config.has("attention_head_dim"))
    add_value(section, "attention_head_dim", int64_t{0});
  require_value(config, "time_embedding_type", std::string("positional"));
  require_value(config, "mid_block_type", std::string("UNetMidBlock2D"));
  require_value(config, "downsample_type", std::string("conv"));
  require_value(config, "upsample_type", std::string("conv"));
  if (config.has("in_channels")) require_value(config, "out_channels", config.at("in_channels").integer());
  for (const char* key :
       {"time_embedding_dim", "attn_norm_num_groups", "class_embed_type", "num_class_embeds"})
    require_none(config, key);
  copy_dropout(section, config, asked, "dropout");
  return section;
}

Setting::Table noise_section(const Setting& scheduler) {
  Table section;
  for (const char* key : kNoiseKeys) copy_value(section, scheduler, key, key);
  require_value(scheduler, "timestep_spacing", std::string("leading"));
  require_value(scheduler, "steps_offset", int64_t{0});
  require_value(scheduler, "thresholding", false);
  require_value(scheduler, "rescale_betas_zero_snr", false);
  require_none(scheduler, "trained_betas");
  return section;
}

Setting::Table unet_config(const Setting& model, int64_t channels) {
  Table config;
  add_value(config, "_class_name", std::string("UNet2DModel"));
  add_value(config, "_diffusers_version", std::string(kVersion));
  for (const char* key : kUnetKeys)
    if (const std::string name = key; name == "in_channels")
      add_value(config, name, channels);
    else if (name == "attention_head_dim" && model.at(key).integer() == 0)
      add_value(config, name, std::monostate());
    else
      config.emplace_back(name, model.at(name));
  add_value(config, "out_channels", channels);
  config.emplace_back("dropout", model.at("dropout"));
  return config;
}

Setting::Table scheduler_config(const Setting& model) {
  Table config;
  add_value(config, "_class_name", std::string("DDPMScheduler"));
  add_value(config, "_diffusers_version", std::string(kVersion));
  for (const char* key : kNoiseKeys) config.emplace_back(key, model.at(key));
  return config;
}

Setting::Table pipeline_config() {
  const auto part = [](const char* name) {
    return Setting::Array{Setting(std::string("diffusers"), "", {}), Setting(std::string(name), "", {})};
  };
  Table config;
  add_value(config, "_class_name", std::string("DDPMPipeline"));
  add_value(config, "_diffusers_version", std::string(kVersion));
  add_value(config, "scheduler", part("DDPMScheduler"));
  add_value(config, "unet", part("UNet2DModel"));
  return config;
}

}  // namespace tutti

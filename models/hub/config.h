#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "recipe/setting.h"

// Configurations of Hugging Face's transformers and diffusers, and the zoo's models: a config.json of "gpt2"
// is a gpt; of "bert" a bert_mlm, bert_classification or bert_contrastive; of "llama", "mistral", "qwen2" and
// "qwen3" a llama; of diffusers' UNet2DModel a diffusion_unet. Free of libtorch.
namespace tutti {

class Disk;

// Kind and sizes of [model] for a config.json (io/json/json_setting.h). `asked`: the section with kind =
// "hf", of which `head`, `num_classes`, `loss`, `dropout` and a contrastive head's keys count before the
// file. Throws UserError for other models, and for options that the zoo's model does not have.
Setting::Table zoo_section(const Setting& config, const Setting& asked);
// Throws UserError for a key of the recipe's section that the zoo's model of this kind does not take.
void require_taken(const Setting& asked, const std::string& kind);

// The contents of a folder of transformers', or of diffusers' pipeline: configurations and a file of weights,
// with paths in the folder.
struct HubFolder {
  std::vector<std::pair<std::string, Setting>> configs;
  std::string weights;

  void write_configs(Disk& disk, const std::string& folder) const;
};

// The folder of a resolved [model] section with one of these kinds; `width`: classes of a classifier,
// channels of a diffusion model's images (hub_width). Throws UserError for other kinds.
HubFolder hub_folder(const Setting& model, int64_t width);

}  // namespace tutti

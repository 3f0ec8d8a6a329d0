#pragma once

#include <cstdint>
#include <string>

#include "recipe/setting.h"

// Configurations of Hugging Face's transformers and the zoo's models: a config.json of "gpt2" is a gpt, one
// of "bert" is a bert_mlm or bert_classification, and those of "llama", "mistral", "qwen2" and "qwen3" are a
// llama. Free of libtorch.
namespace tutti {

// Kind and sizes of [model] for a config.json (io/formats/json_setting.h). `asked`: the section with kind =
// "hf", of which `head`, `num_classes` and `dropout` count before the file. Throws UserError for other
// models, and for options that the zoo's model does not have.
Setting::Table zoo_section(const Setting& config, const Setting& asked);

// The config.json of a resolved [model] section with one of these kinds; `classes`: of a classifier. Throws
// UserError for other kinds.
Setting hub_config(const Setting& model, int64_t classes);

}  // namespace tutti

#pragma once

#include <string>

#include "recipe/setting.h"

// Values of a config.json, and of a section of [model]. Free of libtorch.
namespace tutti {

void add_value(Setting::Table& table, const std::string& key, Setting::Value value);

// Adds the file's value, if any, under the zoo's key.
void copy_value(Setting::Table& to, const Setting& config, const std::string& key,
                const std::string& zoo_key);

// The section's dropout `key`: the recipe's, or else the config's, if any.
void copy_dropout(Setting::Table& section, const Setting& config, const Setting& asked, const char* key);

// Counts a negative pad_token_id from the end of the vocabulary, as padding_idx of torch.nn.Embedding.
void count_pad_token(Setting::Table& section);

// The zoo's model is as the configuration says only with this value, which may be absent. Throws UserError
// for another.
void require_value(const Setting& config, const char* key, const Setting::Value& value);

// "hidden_act" of a config, whose "gelu_pytorch_tanh" is the recipe's gelu_tanh.
void copy_activation(Setting::Table& to, const Setting& config);

// transformers' name of a recipe's activation.
std::string transformers_activation(const std::string& name);

}  // namespace tutti

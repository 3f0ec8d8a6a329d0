#include "models/hub/llama.h"

#include <algorithm>

#include "models/hub/values.h"
#include "models/zoo/options.h"
#include "recipe/catalog.h"

namespace tutti {
namespace {

using Table = Setting::Table;

constexpr const char* kSizes[] = {"vocab_size",
                                  "hidden_size",
                                  "intermediate_size",
                                  "num_hidden_layers",
                                  "num_attention_heads",
                                  "num_key_value_heads",
                                  "head_dim",
                                  "max_position_embeddings",
                                  "initializer_range",
                                  "rms_norm_eps",
                                  "tie_word_embeddings",
                                  "attention_bias",
                                  "mlp_bias",
                                  "pad_token_id",
                                  "rope_theta"};

// What transformers' configurations have where a file says nothing, and the recipe another default.
struct TypeDefaults {
  const char* model_type;
  int64_t key_value_heads;  // 0: as many as attention heads
  int64_t head_dim;         // 0: hidden_size / num_attention_heads
  int64_t positions;
  int64_t vocabulary;
  int64_t intermediate;
};
constexpr TypeDefaults kDefaults[] = {{"llama", 0, 0, 2048, 32000, 11008},
                                      {"mistral", 8, 0, 4096 * 32, 32000, 14336},
                                      {"qwen2", 32, 0, 32768, 151936, 22016},
                                      {"qwen3", 32, 128, 32768, 151936, 22016}};
constexpr int64_t kWindow = 4096;
constexpr int64_t kMaxWindowLayers = 28;

const TypeDefaults* defaults_of(const std::string& model_type) {
  const auto* defaults = std::ranges::find(kDefaults, model_type, &TypeDefaults::model_type);
  return defaults == std::end(kDefaults) ? nullptr : defaults;
}

void add_default(Table& section, const Setting& config, const char* key, int64_t value) {
  if (value != 0 && !config.find(key)) add_value(section, key, value);
}

// transformers 5 has one table, and earlier versions rope_theta beside a table of the scaling.
void copy_rotary(Table& section, const Setting& config) {
  require_value(config, "partial_rotary_factor", 1.0);
  const char* key = config.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
  if (!config.has(key)) return;
  require_value(config.at(key), "partial_rotary_factor", 1.0);
  copy_value(section, config, key, "rope_scaling");
  std::erase_if(section.back().second.table(),
                [](const auto& one) { return one.first == "partial_rotary_factor" || one.second.is_none(); });
}

void copy_layer_types(Table& section, const Setting& config) {
  if (config.has("layer_types")) return copy_value(section, config, "layer_types", "layer_types");
  const int64_t from =
      config.has("max_window_layers") ? config.at("max_window_layers").integer() : kMaxWindowLayers;
  Setting::Array types;
  for (int64_t i = 0; i < config.at("num_hidden_layers").integer(); ++i)
    types.emplace_back(std::string(i >= from ? "sliding_attention" : "full_attention"), "", Position{});
  add_value(section, "layer_types", std::move(types));
}

void copy_window(Table& section, const Setting& config, const std::string& model_type) {
  if (model_type == "llama") return;
  const bool is_mistral = model_type == "mistral";
  const bool slides =
      is_mistral || (config.has("use_sliding_window") && config.at("use_sliding_window").boolean());
  const bool is_none = config.find("sliding_window") && !config.has("sliding_window");
  if (!slides || is_none) return;
  if (config.has("sliding_window"))
    copy_value(section, config, "sliding_window", "sliding_window");
  else
    add_value(section, "sliding_window", kWindow);
  if (!is_mistral) copy_layer_types(section, config);
}

const char* architecture_of(const std::string& model_type) {
  if (model_type == "mistral") return "MistralForCausalLM";
  if (model_type == "qwen2") return "Qwen2ForCausalLM";
  return model_type == "qwen3" ? "Qwen3ForCausalLM" : "LlamaForCausalLM";
}

bool slides(const Setting& model) { return model.has("sliding_window"); }

Setting::Array layer_types_of(const LlamaOptions& options) {
  Setting::Array types;
  for (int64_t i = 0; i < options.num_hidden_layers; ++i)
    types.emplace_back(std::string(options.window_of(i) > 0 ? "sliding_attention" : "full_attention"), "",
                       Position{});
  return types;
}

void add_window(Table& config, const Setting& model) {
  const std::string& type = model.at("model_type").text();
  if (type == "llama") return;
  if (slides(model))
    config.emplace_back("sliding_window", model.at("sliding_window"));
  else
    add_value(config, "sliding_window", std::monostate());
  if (type == "mistral") return;
  add_value(config, "use_sliding_window", slides(model));
  add_value(config, "layer_types", layer_types_of(LlamaOptions::kind().read(model)));
}

// False for biases that a type's configuration does not have, and for rope_theta, which add_rotary writes.
bool has_key(const std::string& model_type, const std::string& key) {
  if (key == "attention_bias") return model_type == "llama" || model_type == "qwen3";
  if (key == "mlp_bias") return model_type == "llama";
  return key != "rope_theta";
}

// As before transformers 5, which reads both.
void add_rotary(Table& config, const Setting& model) {
  Table scaling;
  double theta = model.at("rope_theta").number();
  if (model.has("rope_scaling"))
    for (const auto& [key, value] : model.at("rope_scaling").table()) {
      const bool is_theta = key == "rope_theta";
      if (is_theta && !value.is_none()) theta = value.number();
      const bool is_default = key == "truncate" && value.boolean();
      if (!is_theta && !is_default && !value.is_none()) scaling.emplace_back(key, value);
    }
  add_value(config, "rope_theta", theta);
  if (scaling.size() > 1) return add_value(config, "rope_scaling", std::move(scaling));
  add_value(config, "rope_scaling", std::monostate());
}

}  // namespace

bool is_of_llama(const std::string& model_type) { return defaults_of(model_type) != nullptr; }

Setting::Table llama_section(const Setting& config, const Setting& asked) {
  const std::string& type = config.at("model_type").text();
  const TypeDefaults& defaults = *defaults_of(type);
  Table section;
  add_value(section, "kind", std::string("llama"));
  add_value(section, "model_type", type);
  for (const char* key : kSizes) copy_value(section, config, key, key);
  add_default(section, config, "num_key_value_heads", defaults.key_value_heads);
  add_default(section, config, "head_dim", defaults.head_dim);
  add_default(section, config, "max_position_embeddings", defaults.positions);
  add_default(section, config, "vocab_size", defaults.vocabulary);
  add_default(section, config, "intermediate_size", defaults.intermediate);
  count_pad_token(section);
  copy_activation(section, config);
  copy_rotary(section, config);
  copy_window(section, config, type);
  copy_dropout(section, config, asked, "attention_dropout");
  return section;
}

Setting::Table llama_config(const Setting& model) {
  const std::string& type = model.at("model_type").text();
  Table config;
  add_value(config, "architectures", Setting::Array{Setting(std::string(architecture_of(type)), "", {})});
  add_value(config, "model_type", type);
  for (const char* key : kSizes)
    if (model.has(key) && has_key(type, key)) config.emplace_back(key, model.at(key));
  const LlamaOptions options = LlamaOptions::kind().read(model);
  if (!options.num_key_value_heads) add_value(config, "num_key_value_heads", options.key_value_heads());
  if (!options.head_dim) add_value(config, "head_dim", options.head_features());
  add_value(config, "hidden_act", transformers_activation(model.at("hidden_act").text()));
  config.emplace_back("attention_dropout", model.at("attention_dropout"));
  add_rotary(config, model);
  add_window(config, model);
  for (const char* key : {"bos_token_id", "eos_token_id"}) add_value(config, key, std::monostate());
  return config;
}

}  // namespace tutti

#include "models/zoo/llama.h"

#include <ATen/ops/linear.h>

#include <algorithm>
#include <limits>

#include "models/layers/blocks.h"
#include "models/layers/embedding.h"
#include "models/layers/linear.h"
#include "models/layers/llama/blocks.h"
#include "models/layers/llama/rotary.h"
#include "models/layers/norm.h"
#include "models/zoo/sample_checks.h"

namespace tutti {
namespace {

bool is(const LlamaOptions& o, const char* model_type) { return o.model_type == model_type; }

LlamaBlockOptions block_options(const LlamaOptions& o, int64_t layer) {
  return {.attention = {.features = o.hidden_size,
                        .heads = o.num_attention_heads,
                        .key_value_heads = o.key_value_heads(),
                        .head_features = o.head_features(),
                        .bias = o.attention_bias || is(o, "qwen2"),
                        .output_bias = o.attention_bias,
                        .has_norms = is(o, "qwen3"),
                        .norm_eps = o.rms_norm_eps,
                        .dropout = o.attention_dropout,
                        .window = o.window_of(layer),
                        .deviation = o.initializer_range},
          .intermediate = o.intermediate_size,
          .activation = o.hidden_act,
          .mlp_bias = o.mlp_bias};
}

std::shared_ptr<Layer> decoder_layers(const LlamaOptions& o) {
  std::vector<std::shared_ptr<Layer>> chain;
  for (int64_t i = 0; i < o.num_hidden_layers; ++i)
    chain.push_back(std::make_shared<LlamaBlock>(block_options(o, i)));
  return std::make_shared<Sequential>(std::move(chain));
}

std::optional<double> number_of(const Setting& table, const char* key) {
  return table.has(key) ? std::optional(table.at(key).number()) : std::nullopt;
}

RotaryOptions rotary_options(const LlamaOptions& o) {
  RotaryOptions rotary{.theta = o.rope_theta,
                       .features = o.head_features(),
                       .max_positions = o.max_position_embeddings,
                       .original_max_positions = o.max_position_embeddings};
  const Setting& table = o.rope_scaling;
  if (table.is_none()) return rotary;
  const auto read = [&](double& into, const char* key) { into = number_of(table, key).value_or(into); };
  rotary.type = table.at("rope_type").text();
  read(rotary.theta, "rope_theta");
  read(rotary.factor, "factor");
  if (table.has("original_max_position_embeddings"))
    rotary.original_max_positions = table.at("original_max_position_embeddings").integer();
  read(rotary.low_freq_factor, "low_freq_factor");
  read(rotary.high_freq_factor, "high_freq_factor");
  read(rotary.beta_fast, "beta_fast");
  read(rotary.beta_slow, "beta_slow");
  rotary.attention_factor = number_of(table, "attention_factor");
  rotary.mscale = number_of(table, "mscale");
  rotary.mscale_all_dim = number_of(table, "mscale_all_dim");
  if (table.has("truncate")) rotary.truncate = table.at("truncate").boolean();
  return rotary;
}

std::shared_ptr<Layer> token_table(const LlamaOptions& o) {
  if (!o.pad_token_id) return std::make_shared<Embedding>(o.vocab_size, o.hidden_size, o.initializer_range);
  return std::make_shared<TokenEmbedding>(o.vocab_size, o.hidden_size, *o.pad_token_id, o.initializer_range);
}

// The shortest sliding window; 0: none.
int64_t window_of(const LlamaOptions& o) {
  for (int64_t i = 0; i < o.num_hidden_layers; ++i)
    if (o.window_of(i) > 0) return o.window_of(i);
  return 0;
}

// The part under "model."; returns the last hidden states, or the scores if the token table gives them, too.
class Decoder final : public Layer {
 public:
  explicit Decoder(const LlamaOptions& o)
      : window_(window_of(o)),
        is_tied_(o.tie_word_embeddings),
        embed_tokens_(add_slot("embed_tokens", token_table(o))),
        layers_(add_slot("layers", decoder_layers(o))),
        norm_(add_slot("norm", std::make_shared<RMSNorm>(o.hidden_size, o.rms_norm_eps))),
        rotary_emb_(add_slot("rotary_emb", std::make_shared<RotaryEmbedding>(rotary_options(o)))) {}

  // The tokens, or a tree of "input", "segments" and "positions".
  TensorTree forward(const TensorTree& input) override {
    const KeyCache* cache = context().cache;
    const at::Tensor& tokens = input.is_leaf() ? input.tensor() : input["input"];
    const at::Tensor segments = input.is_leaf() ? at::Tensor() : input["segments"];
    const TensorTree angles = rotary_emb_(TensorTree(positions_of(input, cache)));
    DecoderStates x{.states = embed_tokens_(tokens), .cos = angles["cos"], .sin = angles["sin"]};
    x.mask = seen_keys(segments, tokens.size(1), 0, tokens.device());
    if (window_ > 0) x.near = seen_keys(segments, tokens.size(1), window_, tokens.device());
    const at::Tensor states = DecoderStates::of(layers_(x.tree())).states;
    const at::Tensor normal = norm_(cache ? cache->last_of_rows(states) : states);
    return is_tied_ ? at::linear(normal, table().own_parameters().front()->tensor) : normal;
  }

  const char* kind() const override { return "LlamaModel"; }
  std::vector<Layer*> reads() const override {
    return is_tied_ ? std::vector<Layer*>{&table()} : std::vector<Layer*>();
  }
  Layer& table() const { return embed_tokens_.layer(); }

 private:
  int64_t window_;
  bool is_tied_;
  Slot& embed_tokens_;
  Slot& layers_;
  Slot& norm_;
  Slot& rotary_emb_;
};

double numbers_in(Layer& root) {
  double numbers = 0;
  for (const auto& named : parameters(root)) numbers += static_cast<double>(named.parameter->tensor.numel());
  return numbers;
}

}  // namespace

Llama::Llama(const LlamaOptions& options)
    : options_(options), model_(add_slot("model", std::make_shared<Decoder>(options))) {
  multiplied_ = numbers_in(*this);
  if (options.tie_word_embeddings) return;
  lm_head_ = &add_slot("lm_head", normal_linear(options.hidden_size, options.vocab_size,
                                                options.initializer_range, /*bias=*/false));
  multiplied_ = numbers_in(*this) - static_cast<double>(options.vocab_size * options.hidden_size);
}

TensorTree Llama::forward(const Batch& batch) {
  const TensorTree outputs = model_(tokens_of(batch));
  return lm_head_ ? (*lm_head_)(outputs) : outputs;
}

double Llama::flops_per_batch(const Batch& batch) const {
  const int64_t length = batch["input"].size(1);
  int64_t seen = 0;
  for (int64_t i = 0; i < options_.num_hidden_layers; ++i) {
    const int64_t window = options_.window_of(i);
    seen += window > 0 ? std::min(window, length) : length;
  }
  const auto attention = static_cast<double>(options_.num_attention_heads * options_.head_features() * seen);
  return static_cast<double>(batch["input"].numel()) * (6.0 * multiplied_ + 12.0 * attention);
}

// The angles of "dynamic" change with the length of a pass's longest sequence, if it is longer than
// max_position_embeddings; and so would keys that are kept.
std::vector<Tokens> Llama::generate(const std::vector<Prompt>& prompts, const GenerationOptions& options) {
  const int64_t longest = longest_sequence(*this), most = options_.max_position_embeddings;
  const int64_t window = longest > 0 ? longest : std::numeric_limits<int64_t>::max();
  const bool is_dynamic = rotary_options(options_).type == "dynamic";
  const CausalSight sight{window, is_dynamic ? std::min(window, most) : window, options_.num_hidden_layers};
  const auto becomes_long = [&](const Prompt& prompt) {
    return std::ssize(prompt.tokens) + options.max_new_tokens - 1 > most;
  };
  if (!is_dynamic || std::ranges::none_of(prompts, becomes_long))
    return generate_causally(*this, sight, prompts, options);
  std::vector<Tokens> texts;
  for (const Prompt& prompt : prompts)
    texts.push_back(generate_causally(*this, sight, {prompt}, options).front());
  return texts;
}

namespace {

void require_of_type(const Setting& section, const char* key, bool is_given,
                     const std::vector<std::string>& types) {
  const std::string& type = section.at("model_type").text();
  if (is_given && std::ranges::count(types, type) == 0)
    section.at(key).fail("a model of model_type \"" + type + "\" has none");
}

void require_layer_types(const Setting& section, const LlamaOptions& o) {
  if (o.layer_types.empty()) return;
  const Setting& key = section.at("layer_types");
  if (std::ssize(o.layer_types) != o.num_hidden_layers)
    key.fail("expected one for each of the " + std::to_string(o.num_hidden_layers) + " blocks");
  for (const Setting& element : key.array())
    if (element.text() != "full_attention" && element.text() != "sliding_attention")
      element.fail("expected full_attention or sliding_attention");
  if (!o.sliding_window && std::ranges::count(o.layer_types, "sliding_attention") > 0)
    key.fail("expected model.sliding_window, the tokens that those blocks see");
}

void require_head(const Setting& section, const LlamaOptions& o) {
  if (!o.head_dim) require_heads(section.at("num_attention_heads"), o.hidden_size, "hidden_size");
  if (o.num_attention_heads % o.key_value_heads() != 0)
    section.at("num_key_value_heads")
        .fail("expected a divisor of num_attention_heads, " + std::to_string(o.num_attention_heads));
  if (o.head_features() % 2 != 0)
    section.at(o.head_dim ? "head_dim" : "num_attention_heads")
        .fail("expected heads of an even number of features, not " + std::to_string(o.head_features()) +
              ": rotary positions turn pairs of them");
}

// The numbers that a type of scaling has no default for.
void require_scaling(const LlamaOptions& o) {
  const Setting& table = o.rope_scaling;
  if (table.is_none()) return;
  const std::string& type = table.at("rope_type").text();
  const auto require = [&](const char* key) {
    if (!table.has(key)) table.at("rope_type").fail("expected " + std::string(key) + " beside it");
  };
  if (type != "default") require("factor");
  if (type != "llama3") return;
  require("low_freq_factor");
  require("high_freq_factor");
  if (table.at("high_freq_factor").number() <= table.at("low_freq_factor").number())
    table.at("high_freq_factor").fail("expected more than low_freq_factor");
}

}  // namespace

ModelPtr LlamaOptions::make(const Setting& section, const SampleSpec& samples) const {
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"})
    positive(section.at(key));
  require_one_a_token(section, samples, "target", "input");
  require_vocabulary(section, samples);
  require_head(section, *this);
  require_of_type(section, "attention_bias", attention_bias, {"llama", "qwen3"});
  require_of_type(section, "mlp_bias", mlp_bias, {"llama"});
  require_of_type(section, "sliding_window", sliding_window.has_value(), {"mistral", "qwen2", "qwen3"});
  require_of_type(section, "layer_types", !layer_types.empty(), {"qwen2", "qwen3"});
  require_layer_types(section, *this);
  require_scaling(*this);
  if (pad_token_id && *pad_token_id >= vocab_size)
    section.at("pad_token_id").fail("expected a token below vocab_size, " + std::to_string(vocab_size));
  return std::make_shared<Llama>(*this);
}

}  // namespace tutti

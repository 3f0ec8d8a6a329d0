#include "models/zoo/gpt.h"

#include <ATen/ATen.h>

#include <cmath>

#include "models/layers/activation.h"
#include "models/layers/attention.h"
#include "models/layers/blocks.h"
#include "models/layers/embedding.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/zoo/sample_checks.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr double kDeviation = 0.02;

CausalSelfAttention::Options block_options(const GptOptions& o) {
  return {.features = o.n_embd,
          .heads = o.n_head,
          .dropout = o.dropout,
          .output_deviation = kDeviation / std::sqrt(2.0 * static_cast<double>(o.n_layer))};
}

std::shared_ptr<Layer> blocks(const GptOptions& o) {
  std::vector<std::shared_ptr<Layer>> chain;
  for (int64_t i = 0; i < o.n_layer; ++i) chain.push_back(std::make_shared<GptBlock>(block_options(o)));
  return std::make_shared<Sequential>(std::move(chain));
}

// Keys that a query sees: those of its own document, up to itself. bool [N, 1, T, T].
at::Tensor within_segments(const at::Tensor& segments) {
  const at::Tensor same = segments.unsqueeze(2).eq(segments.unsqueeze(1));
  return same.tril().unsqueeze(1);
}

// The part under "transformer."; returns scores, since the token table is both input and output layer.
class Transformer final : public Layer {
 public:
  explicit Transformer(const GptOptions& o)
      : wte_(add_slot("wte", std::make_shared<Embedding>(o.vocab_size, o.n_embd, kDeviation))),
        wpe_(add_slot("wpe", std::make_shared<LearnedPositions>(o.n_positions, o.n_embd, kDeviation))),
        drop_(add_slot("drop", std::make_shared<Dropout>(o.dropout))),
        h_(add_slot("h", blocks(o))),
        ln_f_(add_slot("ln_f", norm_before_linear(o.n_embd))) {}

  // The tokens, or a tree of "input", "segments" and "positions".
  TensorTree forward(const TensorTree& input) override {
    const KeyCache* cache = context().cache;
    const at::Tensor& tokens = input.is_leaf() ? input.tensor() : input["input"];
    const MaskedStates x{drop_(wte_(tokens) + wpe_(positions_of(input, cache))),
                         input.is_leaf() ? at::Tensor() : within_segments(input["segments"])};
    const at::Tensor states = MaskedStates::of(h_(x.tree())).states;
    return at::linear(ln_f_(cache ? cache->last_of_rows(states) : states), table());
  }

  const char* kind() const override { return "Transformer"; }
  std::vector<Layer*> reads() const override { return {&wte_.layer()}; }

 private:
  const at::Tensor& table() const { return wte_.layer().own_parameters().front()->tensor; }

  Slot& wte_;
  Slot& wpe_;
  Slot& drop_;
  Slot& h_;
  Slot& ln_f_;
};

}  // namespace

Gpt::Gpt(const GptOptions& options)
    : options_(options), transformer_(add_slot("transformer", std::make_shared<Transformer>(options))) {
  for (const auto& named : tutti::parameters(*this))
    parameters_ += static_cast<double>(named.parameter->tensor.numel());
}

TensorTree Gpt::forward(const Batch& batch) { return transformer_(tokens_of(batch)); }

double Gpt::flops_per_batch(const Batch& batch) const {
  const auto tokens = static_cast<double>(batch["input"].numel());
  const auto length = static_cast<double>(batch["input"].size(1));
  return tokens *
         (6.0 * parameters_ + 12.0 * static_cast<double>(options_.n_layer * options_.n_embd) * length);
}

std::vector<Tokens> Gpt::generate(const std::vector<Prompt>& prompts, const GenerationOptions& options) {
  const int64_t longest = longest_sequence(*this);
  const int64_t window = longest > 0 ? longest : options_.n_positions;
  return generate_causally(*this, {window, /*cached=*/window, options_.n_layer}, prompts, options);
}

ModelPtr GptOptions::make(const Setting& section, const SampleSpec& samples) const {
  for (const char* key : {"vocab_size", "n_positions", "n_embd", "n_layer", "n_head"})
    positive(section.at(key));
  require_one_a_token(section, samples, "target", "input");
  require_vocabulary(section, samples);
  require_heads(section.at("n_head"), n_embd, "n_embd");
  return std::make_shared<Gpt>(*this);
}

}  // namespace tutti

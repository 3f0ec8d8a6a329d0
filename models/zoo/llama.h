#pragma once

#include <cstdint>
#include <string>

#include "models/zoo/causal_lm.h"
#include "models/zoo/options.h"

namespace tutti {

// The Llama family: pre-norm blocks with RMSNorm, rotary positions, grouped queries and gated feed-forward
// layers. Parameters have the names, layouts and initial values of transformers' LlamaForCausalLM,
// MistralForCausalLM, Qwen2ForCausalLM and Qwen3ForCausalLM, by `model_type`
// ("model.layers.0.self_attn.q_proj.weight"); a tied lm_head has no entry. With batch["segments"] and
// batch["positions"] [N, T] (data/texts/packed_texts.h) a token sees the tokens of its own document alone.
// Alibi takes the place of the rotary positions.
class Llama final : public CausalLm {
 public:
  explicit Llama(const LlamaOptions& options);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "Llama"; }
  const LlamaOptions& options() const { return options_; }  // as built, before surgery

  // Per token: 6 per parameter that is multiplied (not the parameters of a table that is only looked up), and
  // for attention 12 times heads, a head's features and the tokens that a block's window has, of T (Chowdhery
  // et al., 2022, appendix B).
  double flops_per_batch(const Batch& batch) const override;
  int64_t vocabulary() const override { return options_.vocab_size; }
  std::vector<Tokens> generate(const std::vector<Prompt>& prompts, const GenerationOptions& options) override;

 private:
  LlamaOptions options_;
  Slot& model_;
  Slot* lm_head_ = nullptr;  // null: tied
  double multiplied_ = 0;    // parameters
};

}  // namespace tutti

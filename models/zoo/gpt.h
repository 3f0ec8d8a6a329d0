#pragma once

#include <cstdint>
#include <string>

#include "models/zoo/causal_lm.h"
#include "models/zoo/options.h"

namespace tutti {

// GPT-2: pre-norm blocks, learned positions, output tied to the token embeddings. Parameters have the names,
// layouts and initial values of transformers' GPT2LMHeadModel ("transformer.h.0.attn.c_attn.weight"); the
// tied lm_head has no entry. Input: integers batch["input"] [N, T <= n_positions]; surgery may change that
// limit (`longest_sequence`). Outputs: scores [N, T, vocab_size]. Target: batch["target"] [N, T], the next
// token or kIgnoredTarget. With batch["segments"] and batch["positions"] [N, T] (data/texts/packed_texts.h) a
// token sees the tokens of its own document alone.
class Gpt final : public CausalLm {
 public:
  explicit Gpt(const GptOptions& options);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "Gpt"; }
  const GptOptions& options() const { return options_; }  // as built, before surgery

  // Per token: 6 per parameter, and 12 n_layer n_embd T for attention (Chowdhery et al., 2022, appendix B).
  double flops_per_batch(const Batch& batch) const override;
  int64_t vocabulary() const override { return options_.vocab_size; }
  std::vector<Tokens> generate(const std::vector<Prompt>& prompts, const GenerationOptions& options) override;

 private:
  GptOptions options_;
  Slot& transformer_;
  double parameters_ = 0;
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <string>

#include "models/model.h"

namespace tutti {

struct GptOptions {
  int64_t vocab_size = 256;
  int64_t n_positions = 256;
  int64_t n_embd = 256;
  int64_t n_layer = 4;
  int64_t n_head = 4;
  double dropout = 0.0;
};

// GPT-2: pre-norm blocks, learned positions, the output tied to the token embeddings. Parameters are named
// and laid out as transformers' GPT2LMHeadModel ("transformer.h.0.attn.c_attn.weight"; the tied lm_head is
// none of its own) and start as there. batch["input"] is [N, T <= n_positions] integers and gives [N, T,
// vocab_size]; batch["target"] [N, T] holds the token that follows, or kIgnored.
class Gpt final : public Model {
 public:
  static constexpr int64_t kIgnored = -100;

  explicit Gpt(const GptOptions& options);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "Gpt"; }
  const GptOptions& options() const { return options_; }

  // Mean cross entropy a token, in nats, over the tokens that are not ignored.
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;
  int64_t loss_weight(const Batch& batch) const override;
  std::vector<std::string> get_metrics(bool is_train) const override;
  int64_t tokens(const Batch& batch) const override;
  // 6 a parameter and token, and 12 n_layer n_embd T a token for attention: Chowdhery et al., 2022, appendix
  // B.
  double flops_per_batch(const Batch& batch) const override;
  std::string closing_text(uint64_t seed) override;  // "" unless its tokens are bytes
  int64_t vocabulary() const override { return options_.vocab_size; }
  std::vector<Tokens> generate(const std::vector<Prompt>& prompts, const GenerationOptions& options) override;

 private:
  GptOptions options_;
  Slot& transformer_;
  double parameters_ = 0;
};

struct TextSampleOptions {
  int64_t length = 200;      // bytes to add
  double temperature = 1.0;  // of the softmax that is drawn from; 0 takes the likeliest byte
  uint64_t seed = 0;
};

// What the model, trained on bytes, adds to `prompt` one byte at a time, seeing the last n_positions bytes;
// "\n" stands for an empty prompt. The same seed gives the same text. Runs the model in evaluation mode.
std::string sample_text(Gpt& model, const std::string& prompt, const TextSampleOptions& options);

}  // namespace tutti

#pragma once

#include <string>

#include "models/layers/layer.h"
#include "models/layers/llama/attention.h"

namespace tutti {

// Sizes of a block of the Llama family.
struct LlamaBlockOptions {
  LlamaAttention::Options attention;
  int64_t intermediate = 0;         // width of the feed-forward block
  std::string activation = "silu";  // make_activation's (models/layers/activation.h)
  bool mlp_bias = false;
};

// down_proj(activation(gate_proj(x)) * up_proj(x)); SwiGLU with "silu". transformers' LlamaMLP.
class LlamaMlp final : public Layer {
 public:
  explicit LlamaMlp(const LlamaBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "LlamaMLP"; }

 private:
  Slot& gate_proj_;
  Slot& up_proj_;
  Slot& down_proj_;
  Slot& act_fn_;
};

// y = x + self_attn(input_layernorm(x)); y + mlp(post_attention_layernorm(y)), over DecoderStates. The block
// of transformers' Llama, Mistral, Qwen2 and Qwen3.
class LlamaBlock final : public Layer {
 public:
  explicit LlamaBlock(const LlamaBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "LlamaDecoderLayer"; }

 private:
  Slot& self_attn_;
  Slot& mlp_;
  Slot& input_layernorm_;
  Slot& post_attention_layernorm_;
};

}  // namespace tutti

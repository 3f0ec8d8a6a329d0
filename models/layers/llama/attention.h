#pragma once

#include <optional>

#include "models/layers/attention.h"

namespace tutti {

// The inputs of the blocks of a decoder with rotary positions: states [N, T, features] with the angles of
// their positions (RotaryEmbedding), and masks of the keys that each query sees, bool [N or 1, 1, T, T]:
// `mask` for attention to all tokens before, `near` for attention within a window. An undefined mask means
// all those tokens.
struct DecoderStates {
  at::Tensor states, mask, near, cos, sin;

  static DecoderStates of(const TensorTree& input);
  TensorTree tree() const;
  DecoderStates with(at::Tensor other) const;  // states
};

// Keys that a query sees: of its own document (`segments` [N, T]; undefined: a row is a document), up to the
// query's place, and only the last `window` keys (0: all). bool [N or 1, 1, T, T]; undefined if causality is
// the only rule.
at::Tensor seen_keys(const at::Tensor& segments, int64_t length, int64_t window, at::Device device);

// Causal self-attention of transformers' LlamaAttention, MistralAttention, Qwen2Attention and Qwen3Attention,
// over DecoderStates: "q_proj", "k_proj", "v_proj" and "o_proj", with fewer heads of keys and values than of
// queries, and "q_norm" and "k_norm" over the features of a head, where asked for. With a position bias
// (Alibi) queries and keys are not rotated. Returns [N, T, features].
class LlamaAttention final : public SelfAttention {
 public:
  struct Options {
    int64_t features = 0;
    int64_t heads = 0;
    int64_t key_value_heads = 0;  // divides heads
    int64_t head_features = 0;
    bool bias = false;         // of q_proj, k_proj and v_proj
    bool output_bias = false;  // of o_proj
    bool has_norms = false;    // q_norm and k_norm
    double norm_eps = 1e-6;
    double dropout = 0.0;     // of attention probabilities
    int64_t window = 0;       // tokens that a token sees, its own included; 0: all earlier
    double deviation = 0.02;  // of initial weights
  };

  explicit LlamaAttention(const Options& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "LlamaAttention"; }
  int64_t heads() const override { return options_.heads; }
  bool causal() const override { return true; }
  const Options& options() const { return options_; }

 private:
  Options options_;
  Slot& q_proj_;
  Slot& k_proj_;
  Slot& v_proj_;
  Slot& o_proj_;
  Slot* q_norm_ = nullptr;
  Slot* k_norm_ = nullptr;
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <memory>

#include "models/layers/attention.h"
#include "models/layers/layer.h"

namespace tutti {

// A block of torchvision's VisionTransformer.
struct VitBlockOptions {
  int64_t hidden_dim = 0;
  int64_t num_heads = 0;  // divides hidden_dim
  int64_t mlp_dim = 0;
  double dropout = 0.0;            // of the output of attention and within the feed-forward block
  double attention_dropout = 0.0;  // of attention probabilities
};

// torch.nn.MultiheadAttention over [N, T, features], each token attends to all tokens: "in_proj_weight" [3
// features, features] to queries, keys and values, "out_proj" back.
class MultiheadAttention final : public SelfAttention {
 public:
  explicit MultiheadAttention(const VitBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "MultiheadAttention"; }
  int64_t heads() const override { return heads_; }
  bool causal() const override { return false; }

 private:
  int64_t heads_;
  double dropout_;
  Parameter& in_proj_weight_;
  Parameter& in_proj_bias_;
  Slot& out_proj_;
};

// y = x + dropout(self_attention(ln_1(x))); returns y + mlp(ln_2(y)). torchvision's EncoderBlock.
class VitBlock final : public Layer {
 public:
  explicit VitBlock(const VitBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "EncoderBlock"; }

 private:
  Slot& ln_1_;
  Slot& self_attention_;
  Slot& dropout_;
  Slot& ln_2_;
  Slot& mlp_;
};

}  // namespace tutti

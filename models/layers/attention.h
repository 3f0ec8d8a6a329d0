#pragma once

#include "models/layers/layer.h"

namespace tutti {

// GPT-2's causal self-attention over [N, T, features]: one fused projection to queries, keys and values
// (c_attn), heads of features / heads values, one projection back (c_proj).
class CausalSelfAttention final : public Layer {
 public:
  struct Options {
    int64_t features = 0;
    int64_t heads = 0;
    double dropout = 0.0;            // of attention probabilities, and of the output
    double output_deviation = 0.02;  // of c_proj's initial weight
  };

  explicit CausalSelfAttention(const Options& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "CausalSelfAttention"; }

 private:
  Options options_;
  Slot& c_attn_;
  Slot& c_proj_;
  Slot& resid_dropout_;
};

}  // namespace tutti

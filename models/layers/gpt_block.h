#pragma once

#include "models/layers/attention.h"

namespace tutti {

// GPT-2's feed-forward part: c_fc to 4 times the features, gelu (tanh), c_proj back.
class GptMlp final : public Layer {
 public:
  GptMlp(int64_t features, double dropout, double output_deviation);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "GptMlp"; }

 private:
  Slot& c_fc_;
  Slot& act_;
  Slot& c_proj_;
  Slot& dropout_;
};

// x + attn(ln_1(x)), then that + mlp(ln_2(that)).
class GptBlock final : public Layer {
 public:
  explicit GptBlock(const CausalSelfAttention::Options& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "GptBlock"; }

 private:
  Slot& ln_1_;
  Slot& attn_;
  Slot& ln_2_;
  Slot& mlp_;
};

}  // namespace tutti

#pragma once

#include "models/layers/layer.h"

namespace tutti {

// y = x W^T + b over the last dimension, W [out, in]; torch.nn.Linear, with its initial values.
class Linear final : public Layer {
 public:
  Linear(int64_t in, int64_t out, bool bias = true);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Linear"; }

 private:
  Parameter& weight_;
  Parameter* bias_;
};

// y = x W + b over the last dimension, W [in, out]: transformers' Conv1D, which GPT-2 is made of. W is normal
// with `standard_deviation`, b zero.
class Conv1D final : public Layer {
 public:
  Conv1D(int64_t in, int64_t out, double standard_deviation = 0.02);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Conv1D"; }

 private:
  Parameter& weight_;
  Parameter& bias_;
};

}  // namespace tutti

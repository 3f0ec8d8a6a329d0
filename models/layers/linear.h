#pragma once

#include "models/layers/layer.h"

namespace tutti {

inline std::string from_to(int64_t in, int64_t out) {
  return std::to_string(in) + " -> " + std::to_string(out);
}

// Initial values, drawn from the given generator as by torch.nn.init.
Init constant_init(double value);
Init normal_init(double standard_deviation);
Init uniform_init(double bound);  // in [-bound, bound)

// torch.nn.init.kaiming_uniform_ with a = sqrt(5), for `fan_in` inputs per output: the initial weights and
// biases of nn.Linear, and the biases of nn.Conv2d.
Init kaiming_uniform_init(int64_t fan_in);

// torch.nn.init.kaiming_normal_(mode="fan_out", nonlinearity="relu"): torchvision's convolutions.
Init kaiming_normal_init(int64_t fan_out);

// y = x W^T + b over the last dimension, W [out, in]; torch.nn.Linear with its initial values.
class Linear final : public Layer {
 public:
  Linear(int64_t in, int64_t out, bool bias = true);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Linear"; }
  std::string sizes_text() const override { return from_to(in_features(), out_features()); }
  int64_t in_features() const { return weight_.tensor.size(1); }
  int64_t out_features() const { return weight_.tensor.size(0); }
  Parameter& weight() const { return weight_; }
  Parameter* bias() const { return bias_; }  // null if there is none

 private:
  Parameter& weight_;
  Parameter* bias_;
};

// y = x W + b over the last dimension, W [in, out]: transformers' Conv1D, used by GPT-2. W starts normal
// with `standard_deviation`, b zero.
class Conv1D final : public Layer {
 public:
  Conv1D(int64_t in, int64_t out, double standard_deviation = 0.02);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Conv1D"; }
  std::string sizes_text() const override { return from_to(in_features(), out_features()); }
  int64_t in_features() const { return weight_.tensor.size(0); }
  int64_t out_features() const { return weight_.tensor.size(1); }
  Parameter& weight() const { return weight_; }
  Parameter& bias() const { return bias_; }

 private:
  Parameter& weight_;
  Parameter& bias_;
};

// Looks up rows of a table [rows, features] by integer index. The table starts normal.
class Embedding final : public Layer {
 public:
  Embedding(int64_t rows, int64_t features, double standard_deviation = 0.02);
  TensorTree forward(const TensorTree& indices) override;
  const char* kind() const override { return "Embedding"; }
  int64_t rows() const { return weight_.tensor.size(0); }
  int64_t features() const { return weight_.tensor.size(1); }
  Parameter& weight() const { return weight_; }

 private:
  Parameter& weight_;
};

}  // namespace tutti

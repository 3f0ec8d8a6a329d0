#pragma once

#include <string>

#include "models/layers/layer.h"

namespace tutti {

// max(x, 0). In place, the input is overwritten: no other layer's backward may need the input.
class ReLU final : public Layer {
 public:
  explicit ReLU(bool in_place = false) : in_place_(in_place) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "ReLU"; }

 private:
  bool in_place_;
};

// x times the normal distribution function at x. The tanh approximation is GPT-2's "gelu_new".
class GELU final : public Layer {
 public:
  enum class Form { kExact, kTanh };
  explicit GELU(Form form = Form::kExact) : form_(form) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "GELU"; }

 private:
  Form form_;
};

class Tanh final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Tanh"; }
};

// x where x > 0, else slope * x.
class LeakyReLU final : public Layer {
 public:
  explicit LeakyReLU(double slope = 0.01) : slope_(slope) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "LeakyReLU"; }

 private:
  double slope_;
};

class Sigmoid final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Sigmoid"; }
};

// x * sigmoid(x).
class SiLU final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "SiLU"; }
};

// exp(x) over its sum along a dimension.
class Softmax final : public Layer {
 public:
  explicit Softmax(int64_t dim) : dim_(dim) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Softmax"; }

 private:
  int64_t dim_;
};

class Identity final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override { return input; }
  const char* kind() const override { return "Identity"; }
};

// Makes a layer of activation_names() (models/zoo/activation_names.h); null for any other name. "gelu" is
// exact, "gelu_tanh" and transformers' "gelu_new" its tanh approximation; "silu" and "swish" are the same.
std::shared_ptr<Layer> make_activation(const std::string& name);

// In training, zeroes values with probability p and scales the other values by 1 / (1 - p):
// ForwardContext::kept.
class Dropout final : public Layer {
 public:
  explicit Dropout(double p) : p_(p) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Dropout"; }
  double p() const { return p_; }

 private:
  double p_;
};

}  // namespace tutti

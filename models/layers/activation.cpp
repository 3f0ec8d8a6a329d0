#include "models/layers/activation.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>

namespace tutti {

TensorTree ReLU::forward(const TensorTree& input) {
  if (!in_place_) return at::relu(input.tensor());
  at::Tensor x = input.tensor();
  return at::relu_(x);
}

TensorTree GELU::forward(const TensorTree& input) {
  return at::gelu(input.tensor(), form_ == Form::kTanh ? "tanh" : "none");
}

TensorTree Tanh::forward(const TensorTree& input) { return at::tanh(input.tensor()); }

TensorTree LeakyReLU::forward(const TensorTree& input) { return at::leaky_relu(input.tensor(), slope_); }

TensorTree Sigmoid::forward(const TensorTree& input) { return at::sigmoid(input.tensor()); }

TensorTree SiLU::forward(const TensorTree& input) { return at::silu(input.tensor()); }

TensorTree Softmax::forward(const TensorTree& input) { return at::softmax(input.tensor(), dim_); }

std::shared_ptr<Layer> make_activation(const std::string& name) {
  if (name == "relu") return std::make_shared<ReLU>();
  if (name == "gelu") return std::make_shared<GELU>(GELU::Form::kExact);
  if (name == "gelu_tanh" || name == "gelu_new") return std::make_shared<GELU>(GELU::Form::kTanh);
  if (name == "silu" || name == "swish") return std::make_shared<SiLU>();
  if (name == "tanh") return std::make_shared<Tanh>();
  return nullptr;
}

TensorTree Dropout::forward(const TensorTree& input) {
  if (p_ == 0.0 || !context().training) return input;
  const at::Tensor& x = input.tensor();
  return x * context().kept(x, 1.0 - p_) * (1.0 / (1.0 - p_));
}

}  // namespace tutti

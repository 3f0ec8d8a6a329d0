#include "models/layers/vit/blocks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>

#include <cmath>

#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"

namespace tutti {
namespace {

constexpr double kEps = 1e-6;  // of all norms

// Glorot and Bengio, 2010.
Init xavier_uniform_init(int64_t in, int64_t out) {
  return uniform_init(std::sqrt(6.0 / static_cast<double>(in + out)));
}

std::shared_ptr<Layer> projection(int64_t in, int64_t out, Init weight, Init bias) {
  auto linear = std::make_shared<Linear>(in, out);
  linear->own_parameters()[0]->init = std::move(weight);
  linear->own_parameters()[1]->init = std::move(bias);
  return linear;
}

std::shared_ptr<Layer> feed_forward(const VitBlockOptions& o) {
  const auto layer = [](int64_t in, int64_t out) {
    return projection(in, out, xavier_uniform_init(in, out), normal_init(1e-6));
  };
  return std::make_shared<Sequential>(std::vector<std::shared_ptr<Layer>>{
      layer(o.hidden_dim, o.mlp_dim), std::make_shared<GELU>(GELU::Form::kExact),
      std::make_shared<Dropout>(o.dropout), layer(o.mlp_dim, o.hidden_dim),
      std::make_shared<Dropout>(o.dropout)});
}

std::shared_ptr<Layer> norm(int64_t features) {
  return std::make_shared<LayerNorm>(
      LayerNormOptions{.shape = {features}, .eps = kEps, .before_linear = true});
}

}  // namespace

MultiheadAttention::MultiheadAttention(const VitBlockOptions& o)
    : heads_(o.num_heads),
      dropout_(o.attention_dropout),
      in_proj_weight_(add_parameter("in_proj_weight", {3 * o.hidden_dim, o.hidden_dim},
                                    xavier_uniform_init(o.hidden_dim, 3 * o.hidden_dim))),
      in_proj_bias_(add_parameter("in_proj_bias", {3 * o.hidden_dim}, constant_init(0.0))),
      out_proj_(add_slot("out_proj", projection(o.hidden_dim, o.hidden_dim,
                                                kaiming_uniform_init(o.hidden_dim), constant_init(0.0)))) {}

TensorTree MultiheadAttention::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  const at::Tensor parts = at::linear(x, in_proj_weight_.tensor, in_proj_bias_.tensor);
  const auto heads =
      parts.view({x.size(0), x.size(1), 3, heads_, x.size(2) / heads_}).permute({2, 0, 3, 1, 4});
  const at::Tensor bias = position_bias(x.size(1), x.device());
  const std::optional<at::Tensor> added =
      bias.defined() ? std::optional(bias.to(parts.scalar_type())) : std::nullopt;
  const at::Tensor mixed =
      attend(heads.select(0, 0), heads.select(0, 1), heads.select(0, 2), added, /*causal=*/false, dropout_);
  return out_proj_(mixed.transpose(1, 2).flatten(2));
}

VitBlock::VitBlock(const VitBlockOptions& o)
    : ln_1_(add_slot("ln_1", norm(o.hidden_dim))),
      self_attention_(add_slot("self_attention", std::make_shared<MultiheadAttention>(o))),
      dropout_(add_slot("dropout", std::make_shared<Dropout>(o.dropout))),
      ln_2_(add_slot("ln_2", norm(o.hidden_dim))),
      mlp_(add_slot("mlp", feed_forward(o))) {}

TensorTree VitBlock::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  const at::Tensor y = x + dropout_(self_attention_(ln_1_(x)));
  return y + mlp_(ln_2_(y));
}

}  // namespace tutti

#include "models/layers/llama/blocks.h"

#include <ATen/TensorOperators.h>

#include "models/layers/activation.h"
#include "models/layers/bert_blocks.h"
#include "models/layers/norm.h"

namespace tutti {
namespace {

std::shared_ptr<Layer> projection_of(const LlamaBlockOptions& o, int64_t in, int64_t out) {
  return normal_linear(in, out, o.attention.deviation, o.mlp_bias);
}

std::shared_ptr<Layer> norm_of(const LlamaBlockOptions& o) {
  return std::make_shared<RMSNorm>(o.attention.features, o.attention.norm_eps);
}

}  // namespace

LlamaMlp::LlamaMlp(const LlamaBlockOptions& o)
    : gate_proj_(add_slot("gate_proj", projection_of(o, o.attention.features, o.intermediate))),
      up_proj_(add_slot("up_proj", projection_of(o, o.attention.features, o.intermediate))),
      down_proj_(add_slot("down_proj", projection_of(o, o.intermediate, o.attention.features))),
      act_fn_(add_slot("act_fn", make_activation(o.activation))) {}

TensorTree LlamaMlp::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  const at::Tensor gate = act_fn_(gate_proj_(x));
  return down_proj_(gate * up_proj_(x));
}

LlamaBlock::LlamaBlock(const LlamaBlockOptions& o)
    : self_attn_(add_slot("self_attn", std::make_shared<LlamaAttention>(o.attention))),
      mlp_(add_slot("mlp", std::make_shared<LlamaMlp>(o))),
      input_layernorm_(add_slot("input_layernorm", norm_of(o))),
      post_attention_layernorm_(add_slot("post_attention_layernorm", norm_of(o))) {}

TensorTree LlamaBlock::forward(const TensorTree& input) {
  const DecoderStates given = DecoderStates::of(input);
  const at::Tensor& x = given.states;
  const at::Tensor attended = x + self_attn_(given.with(input_layernorm_(x)).tree()).tensor();
  return given.with(attended + mlp_(post_attention_layernorm_(attended))).tree();
}

}  // namespace tutti

#include "models/layers/llama/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include <utility>

#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "tensors/fused/rotary.h"

namespace tutti {

DecoderStates DecoderStates::of(const TensorTree& input) {
  const auto mask_named = [&](const char* name) {
    const TensorTree* tensors = input.find(name);
    return tensors ? tensors->tensor() : at::Tensor();
  };
  return {input["states"], mask_named("mask"), mask_named("near"), input["cos"], input["sin"]};
}

TensorTree DecoderStates::tree() const {
  TensorTree::Children all{{"states", states}};
  if (mask.defined()) all.emplace_back("mask", mask);
  if (near.defined()) all.emplace_back("near", near);
  all.emplace_back("cos", cos);
  all.emplace_back("sin", sin);
  return all;
}

DecoderStates DecoderStates::with(at::Tensor other) const { return {std::move(other), mask, near, cos, sin}; }

at::Tensor seen_keys(const at::Tensor& segments, int64_t length, int64_t window, at::Device device) {
  const bool is_near = window > 0 && window < length;
  if (!segments.defined() && !is_near) return {};
  at::Tensor seen = segments.defined()
                        ? segments.unsqueeze(2).eq(segments.unsqueeze(1))
                        : at::ones({1, length, length}, at::TensorOptions(at::kBool).device(device));
  seen = seen.tril();
  if (is_near) seen = seen.triu(1 - window);
  return seen.unsqueeze(1);
}

LlamaAttention::LlamaAttention(const Options& o)
    : options_(o),
      q_proj_(add_slot("q_proj", normal_linear(o.features, o.heads * o.head_features, o.deviation, o.bias))),
      k_proj_(add_slot("k_proj",
                       normal_linear(o.features, o.key_value_heads * o.head_features, o.deviation, o.bias))),
      v_proj_(add_slot("v_proj",
                       normal_linear(o.features, o.key_value_heads * o.head_features, o.deviation, o.bias))),
      o_proj_(add_slot("o_proj",
                       normal_linear(o.heads * o.head_features, o.features, o.deviation, o.output_bias))) {
  if (!o.has_norms) return;
  q_norm_ = &add_slot("q_norm", std::make_shared<RMSNorm>(o.head_features, o.norm_eps));
  k_norm_ = &add_slot("k_norm", std::make_shared<RMSNorm>(o.head_features, o.norm_eps));
}

TensorTree LlamaAttention::forward(const TensorTree& input) {
  const DecoderStates given = DecoderStates::of(input);
  const at::Tensor& x = given.states;
  const auto heads_of = [&](Slot& projection) {
    const at::Tensor all = projection(x);
    return all.view({x.size(0), x.size(1), all.size(2) / options_.head_features, options_.head_features});
  };
  at::Tensor queries = heads_of(q_proj_), keys = heads_of(k_proj_);
  const at::Tensor values = heads_of(v_proj_);
  if (q_norm_) {
    queries = (*q_norm_)(queries);
    keys = (*k_norm_)(keys);
  }
  if (!has_position_bias()) {
    queries = rotated(queries, given.cos, given.sin);
    keys = rotated(keys, given.cos, given.sin);
  }
  const at::Tensor mixed =
      attend_causally(queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2),
                      options_.window > 0 ? given.near : given.mask, options_.dropout, options_.window);
  return o_proj_(mixed.transpose(1, 2).flatten(2));
}

}  // namespace tutti

#include "models/layers/attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>

#include "models/layers/dropout.h"
#include "models/layers/linear.h"

namespace tutti {

CausalSelfAttention::CausalSelfAttention(const Options& options)
    : options_(options),
      c_attn_(add_slot("c_attn", std::make_shared<Conv1D>(options.features, 3 * options.features))),
      c_proj_(add_slot(
          "c_proj", std::make_shared<Conv1D>(options.features, options.features, options.output_deviation))),
      resid_dropout_(add_slot("resid_dropout", std::make_shared<Dropout>(options.dropout))) {}

// Queries, keys and values are cut before the heads are, so that backward puts their gradients together in
// one copy.
TensorTree CausalSelfAttention::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  const int64_t features = options_.features;
  const auto parts = c_attn_(x).split(features, -1);
  const auto heads = [&](const at::Tensor& part) {
    return part.view({x.size(0), x.size(1), options_.heads, features / options_.heads}).transpose(1, 2);
  };
  const double dropout = context().training ? options_.dropout : 0.0;
  const at::Tensor mixed = at::scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]),
                                                            /*attn_mask=*/{}, dropout, /*is_causal=*/true);
  return resid_dropout_(c_proj_(mixed.transpose(1, 2).reshape(x.sizes())));
}

}  // namespace tutti

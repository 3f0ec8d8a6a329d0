#include "models/layers/diffusion/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "models/layers/linear.h"
#include "runtime/error.h"

namespace tutti {

ImageAttention::ImageAttention(int64_t channels, const UnetBlockOptions& o)
    : heads_(o.head_features > 0 ? channels / o.head_features : 1),
      output_scale_(o.output_scale),
      group_norm_(o.attention_norm ? &add_slot("group_norm", unet_norm(channels, o)) : nullptr),
      to_q_(add_slot("to_q", std::make_shared<Linear>(channels, channels))),
      to_k_(add_slot("to_k", std::make_shared<Linear>(channels, channels))),
      to_v_(add_slot("to_v", std::make_shared<Linear>(channels, channels))),
      to_out_(add_slot("to_out.0", std::make_shared<Linear>(channels, channels))) {
  TUTTI_ASSERT(heads_ > 0 && channels % heads_ == 0, "the heads do not divide the channels");
}

at::Tensor ImageAttention::split(const at::Tensor& x) const {
  return x.view({x.size(0), x.size(1), heads_, x.size(2) / heads_}).transpose(1, 2);
}

TensorTree ImageAttention::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  const at::Tensor pixels = (group_norm_ ? (*group_norm_)(x) : x).flatten(2).transpose(1, 2);
  const at::Tensor mixed =
      at::scaled_dot_product_attention(split(to_q_(pixels)), split(to_k_(pixels)), split(to_v_(pixels)));
  const at::Tensor back = to_out_(mixed.transpose(1, 2).flatten(2)).transpose(1, 2).reshape(x.sizes());
  const at::Tensor sum = back + x;
  return output_scale_ == 1.0 ? sum : sum / output_scale_;
}

}  // namespace tutti

#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "models/layers/layer.h"

namespace tutti {

// x without the numbers that dropout takes, which depend on the places of samples (dim 0); the other numbers
// times 1 / (1 - p). `whole_channels`: of [N, C, ...] a channel drops as a whole. Outside of training x.
at::Tensor dropped(const ForwardContext& context, const at::Tensor& x, double p, bool whole_channels = false);

// 1 with probability p for each number, by the places of samples, else 0; written into x. Outside of training
// the mean, p.
void fill_bernoulli(const ForwardContext& context, const at::Tensor& x, double p);

// torch.nn.functional.scaled_dot_product_attention's arguments.
struct AttentionArguments {
  at::Tensor query, key, value, mask;  // mask: may be undefined
  double dropout = 0.0;
  bool causal = false;
  std::optional<double> scale = {};
  bool grouped_query = false;
};
// Attention in training by its formula, with masks of dropout by the places of samples.
at::Tensor attention_that_drops(const ForwardContext& context, const AttentionArguments& arguments);

}  // namespace tutti

#include "models/layers/drops.h"

#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

#include "tensors/autograd.h"

namespace tutti {
namespace {

Shape channels_of(const at::Tensor& x) {
  Shape shape(static_cast<std::size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  shape[1] = x.size(1);
  return shape;
}

at::Tensor masked(const at::Tensor& scores, const AttentionArguments& given) {
  const double lowest = -std::numeric_limits<double>::infinity();
  if (given.causal) {
    const at::Tensor seen =
        at::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool)).tril_();
    return scores.masked_fill(seen.logical_not(), lowest);
  }
  if (!given.mask.defined()) return scores;
  if (given.mask.scalar_type() == at::kBool) return scores.masked_fill(given.mask.logical_not(), lowest);
  return scores + given.mask;
}

}  // namespace

at::Tensor dropped(const ForwardContext& context, const at::Tensor& x, double p, bool whole_channels) {
  if (p == 0.0 || !context.training) return x;
  at::Tensor like = x;
  if (whole_channels) like = x.flatten(2).select(2, 0).view(channels_of(x));
  return x * (context.kept(like, 1.0 - p) * (1.0 / (1.0 - p))).to(x.scalar_type());
}

void fill_bernoulli(const ForwardContext& context, const at::Tensor& x, double p) {
  if (context.training)
    x.copy_(context.kept(x, p));
  else
    x.fill_(p);
}

at::Tensor attention_that_drops(const ForwardContext& context, const AttentionArguments& given) {
  const at::Tensor& q = given.query;
  at::Tensor k = given.key, v = given.value;
  if (given.grouped_query) {
    k = k.repeat_interleave(q.size(-3) / k.size(-3), -3);
    v = v.repeat_interleave(q.size(-3) / v.size(-3), -3);
  }
  const AutocastScope off(std::nullopt, Device{q.device()});
  const double factor = given.scale ? *given.scale : 1.0 / std::sqrt(static_cast<double>(q.size(-1))),
               p = given.dropout;
  const at::ScalarType dtype = q.scalar_type(), wide = dtype == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor scores = masked(at::matmul(q.to(wide) * factor, k.to(wide).transpose(-2, -1)), given);
  const at::Tensor kept = at::softmax(scores, -1) * context.kept(scores, 1.0 - p);
  return at::matmul(kept, v.to(wide) * (1.0 / (1.0 - p))).to(dtype);
}

}  // namespace tutti

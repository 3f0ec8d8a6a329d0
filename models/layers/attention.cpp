#include "models/layers/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/layers/activation.h"
#include "models/layers/embedding.h"
#include "models/layers/linear.h"
#include "runtime/error.h"
#include "tensors/autograd.h"

namespace tutti {
namespace {

// [N, T, features] to [N, heads, T, features / heads].
at::Tensor split_heads(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

at::Tensor joined_heads(const at::Tensor& x) { return x.transpose(1, 2).flatten(2); }

// Added to scores: minus infinity for the tokens after each. [length, length]
at::Tensor later_tokens(int64_t length, const at::TensorOptions& options) {
  return at::full({length, length}, -std::numeric_limits<double>::infinity(), options).triu_(1);
}

// Each head for as many neighbouring ones as make `heads`.
at::Tensor repeated_heads(const at::Tensor& x, int64_t heads) {
  return x.repeat_interleave(heads / x.size(1), 1);
}

// Added to scores: minus infinity where the mask is false, else `added`.
at::Tensor masked(const std::optional<at::Tensor>& added, const at::Tensor& mask, const at::Tensor& queries) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const at::Tensor outside = mask.logical_not();
  if (added) return added->masked_fill(outside, kNever);
  return at::zeros(mask.sizes(), queries.options()).masked_fill_(outside, kNever);
}

double lowest_of(at::ScalarType dtype) {
  if (dtype == at::kHalf) return std::numeric_limits<c10::Half>::lowest();
  if (dtype == at::kBFloat16) return std::numeric_limits<c10::BFloat16>::lowest();
  return std::numeric_limits<float>::lowest();
}

}  // namespace

void SelfAttention::set_position_bias(PositionBias bias, int64_t longest) {
  bias_ = std::move(bias);
  longest_ = longest;
}

at::Tensor SelfAttention::position_bias(int64_t length, at::Device device) const {
  if (!bias_) return {};
  if (length > longest_)
    throw UserError("a sequence of " + std::to_string(length) +
                    " tokens is too long: the attention's position bias is for at most " +
                    std::to_string(longest_));
  return bias_(length, device);
}

// Sums of 16-bit floats are kept in 32 bits, as libtorch does, and are no business of autocast's.
at::Tensor SelfAttention::attend(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                                 const std::optional<at::Tensor>& added_to_scores, bool causal,
                                 double dropout) const {
  const bool grouped = keys.size(1) != queries.size(1);
  if (dropout == 0.0 || !context().training)
    return at::scaled_dot_product_attention(queries, keys, values, added_to_scores, 0.0, causal, std::nullopt,
                                            grouped);
  const AutocastScope off(std::nullopt, Device{queries.device()});
  const double root = std::pow(static_cast<double>(queries.size(-1)), -0.25);
  const auto wide = [&](const at::Tensor& x) {
    const at::Tensor query_heads = x.size(1) == queries.size(1) ? x : repeated_heads(x, queries.size(1));
    return query_heads.to(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  };
  at::Tensor scores = at::matmul(wide(queries) * root, (wide(keys) * root).transpose(-2, -1));
  if (added_to_scores) scores = scores + *added_to_scores;
  if (causal) scores = scores + later_tokens(queries.size(-2), scores.options());
  const at::Tensor probabilities = at::softmax(scores, -1) * context().kept(scores, 1.0 - dropout);
  return at::matmul(probabilities, wide(values) * (1.0 / (1.0 - dropout))).to(queries.scalar_type());
}

// The bias of a key minus the bias of the query's own position, which does not change the softmax: small
// numbers near the diagonal are exact in 16 bits, too. Minus infinity for later keys.
std::optional<at::Tensor> SelfAttention::causal_bias(const at::Tensor& queries) const {
  const int64_t length = queries.size(-2);
  const at::Tensor bias = position_bias(length, queries.device());
  if (!bias.defined()) return std::nullopt;
  const at::Tensor later = later_tokens(length, bias.options());
  return (bias - bias.transpose(-2, -1)).add_(later).unsqueeze(0).to(queries.scalar_type());
}

// Each row's bias is against that of the longest row's token, which the softmax does not see.
at::Tensor SelfAttention::attend_kept(const at::Tensor& queries, const KeyCache::Seen& seen) const {
  const int64_t tokens = seen.keys.size(2);
  const at::Tensor bias = position_bias(seen.first + tokens, queries.device());
  std::optional<at::Tensor> added;
  if (bias.defined()) {
    const at::Tensor near = bias.narrow(-1, seen.first, tokens);
    added = (near - near.narrow(-1, tokens - 1, 1)).unsqueeze(0).to(queries.scalar_type());
  }
  if (seen.mask.defined()) added = masked(added, seen.mask, queries);
  return attend(queries, seen.keys, seen.values, added, /*causal=*/false, 0.0);
}

at::Tensor SelfAttention::attend_causally(const at::Tensor& queries, const at::Tensor& keys,
                                          const at::Tensor& values, const at::Tensor& mask, double dropout,
                                          int64_t window) const {
  if (KeyCache* cache = context().cache) {
    const KeyCache::Seen seen = cache->keep(keys, values, window);
    if (!cache->is_first_pass()) return attend_kept(queries, seen);
  }
  std::optional<at::Tensor> added = causal_bias(queries);
  if (mask.defined()) added = masked(added, mask, queries);
  return attend(queries, keys, values, added, /*causal=*/!added, dropout);
}

CausalSelfAttention::CausalSelfAttention(const Options& options)
    : options_(options),
      c_attn_(add_slot("c_attn", std::make_shared<Conv1D>(options.features, 3 * options.features))),
      c_proj_(add_slot(
          "c_proj", std::make_shared<Conv1D>(options.features, options.features, options.output_deviation))),
      resid_dropout_(add_slot("resid_dropout", std::make_shared<Dropout>(options.dropout))) {}

// Splits queries, keys and values before the heads: backward then joins their gradients in one copy.
TensorTree CausalSelfAttention::forward(const TensorTree& input) {
  const MaskedStates given = MaskedStates::of(input);
  const at::Tensor& x = given.states;
  const auto parts = c_attn_(x).split(options_.features, -1);
  const at::Tensor mixed =
      attend_causally(split_heads(parts[0], options_.heads), split_heads(parts[1], options_.heads),
                      split_heads(parts[2], options_.heads), given.mask, options_.dropout);
  return resid_dropout_(c_proj_(mixed.transpose(1, 2).reshape(x.sizes())));
}

MaskedStates MaskedStates::of(const TensorTree& input) {
  if (input.is_leaf()) return {input.tensor(), {}};
  return {input["states"], input["mask"]};
}

TensorTree MaskedStates::tree() const {
  if (!mask.defined()) return states;
  return TensorTree::Children{{"states", states}, {"mask", mask}};
}

BertSelfAttention::BertSelfAttention(const Options& options)
    : options_(options),
      query_(add_slot("query", normal_linear(options.features, options.features, options.deviation))),
      key_(add_slot("key", normal_linear(options.features, options.features, options.deviation))),
      value_(add_slot("value", normal_linear(options.features, options.features, options.deviation))) {}

std::optional<at::Tensor> BertSelfAttention::added_to_scores(const at::Tensor& mask,
                                                             const at::Tensor& queries) const {
  at::Tensor added = position_bias(queries.size(-2), queries.device());
  if (added.defined()) added = added.to(queries.scalar_type());
  if (mask.defined()) {
    const at::Tensor padding = at::zeros(mask.sizes(), queries.options())
                                   .masked_fill_(mask.logical_not(), lowest_of(queries.scalar_type()));
    added = added.defined() ? added + padding : padding;
  }
  return added.defined() ? std::optional(added) : std::nullopt;
}

TensorTree BertSelfAttention::forward(const TensorTree& input) {
  const MaskedStates given = MaskedStates::of(input);
  const at::Tensor queries = split_heads(query_(given.states), options_.heads);
  const at::Tensor keys = split_heads(key_(given.states), options_.heads);
  const at::Tensor values = split_heads(value_(given.states), options_.heads);
  return joined_heads(attend(queries, keys, values, added_to_scores(given.mask, queries), /*causal=*/false,
                             options_.dropout));
}

std::shared_ptr<Layer> normal_linear(int64_t in, int64_t out, double standard_deviation, bool bias) {
  auto linear = std::make_shared<Linear>(in, out, bias);
  linear->weight().init = normal_init(standard_deviation);
  if (bias) linear->bias()->init = constant_init(0.0);
  return linear;
}

int64_t longest_sequence(Layer& root) {
  int64_t longest = 0;
  const auto limit = [&](int64_t length) {
    if (length > 0) longest = longest == 0 ? length : std::min(longest, length);
  };
  for (const auto& [name, layer] : layers(root)) {
    if (const auto* table = dynamic_cast<const PositionTable*>(layer)) limit(table->positions());
    if (const auto* attention = dynamic_cast<const SelfAttention*>(layer)) limit(attention->longest());
  }
  return longest;
}

}  // namespace tutti

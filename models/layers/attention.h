#pragma once

#include <functional>
#include <optional>

#include "models/layers/key_cache.h"
#include "models/layers/layer.h"

namespace tutti {

// The bias of the attention scores of a sequence of `length` tokens: float32 on `device`, [heads, 1, length]
// for causal attention (a number for each key), else [1, heads, length, length].
using PositionBias = std::function<at::Tensor(int64_t length, at::Device device)>;

// Self-attention that takes a bias by position. Alibi changes every layer of a model that is of this class,
// and no other.
//
// For an attention of your own: derive from this class, give `heads` and `causal`, and in `forward` add
// `position_bias`, where defined, to the scores [N, heads, T, T], after the division by the root of a head's
// features and before any mask and the softmax. CausalSelfAttention and BertSelfAttention do.
class SelfAttention : public Layer {
 public:
  virtual int64_t heads() const = 0;
  virtual bool causal() const = 0;  // a token sees no later tokens

  // The bias of all following passes, over sequences of at most `longest` tokens.
  void set_position_bias(PositionBias bias, int64_t longest);
  int64_t longest() const { return longest_; }  // 0 = any length

 protected:
  // Undefined if no bias is set. Throws UserError for a sequence that is too long.
  at::Tensor position_bias(int64_t length, at::Device device) const;

  bool has_position_bias() const { return bias_ != nullptr; }

  // Scaled dot-product attention over [N, heads, T, features]; of keys and values there may be fewer heads,
  // each for as many neighbouring heads of queries. In training a probability is zeroed with probability
  // `dropout`, and the other probabilities are scaled (ForwardContext::kept).
  at::Tensor attend(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                    const std::optional<at::Tensor>& added_to_scores, bool causal, double dropout) const;
  // Causal attention, with the position bias. `mask`: MaskedStates', without keys behind their query;
  // undefined: all earlier keys. In a pass of generation with a cache, tokens see the tokens of earlier
  // passes too, the last `window` tokens (0: all).
  at::Tensor attend_causally(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                             const at::Tensor& mask, double dropout, int64_t window = 0) const;

 private:
  std::optional<at::Tensor> causal_bias(const at::Tensor& queries) const;
  at::Tensor attend_kept(const at::Tensor& queries, const KeyCache::Seen& seen) const;

  PositionBias bias_;
  int64_t longest_ = 0;
};

// Hidden states [N, T, features] and, if some keys do not count, a mask of the counted keys: bool [N, 1, 1,
// T], or [N, 1, T, T] for each query. The input of transformers' layers: a leaf, or a tree of "states" and
// "mask".
struct MaskedStates {
  at::Tensor states;
  at::Tensor mask;  // undefined: all keys count

  static MaskedStates of(const TensorTree& input);
  TensorTree tree() const;
};

// GPT-2's causal self-attention over [N, T, features], or MaskedStates with a mask of the keys of each query:
// one fused projection to queries, keys and values (c_attn), heads of features / heads values, one projection
// back (c_proj). Returns [N, T, features].
class CausalSelfAttention final : public SelfAttention {
 public:
  struct Options {
    int64_t features = 0;
    int64_t heads = 0;
    double dropout = 0.0;            // of attention probabilities and of the output
    double output_deviation = 0.02;  // of c_proj's initial weight
  };

  explicit CausalSelfAttention(const Options& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "CausalSelfAttention"; }
  int64_t heads() const override { return options_.heads; }
  bool causal() const override { return true; }

 private:
  Options options_;
  Slot& c_attn_;
  Slot& c_proj_;
  Slot& resid_dropout_;
};

// BERT's self-attention over MaskedStates: "query", "key" and "value" projections, no projection back. Masked
// keys get the lowest number of the scores' dtype added. Returns [N, T, features].
class BertSelfAttention final : public SelfAttention {
 public:
  struct Options {
    int64_t features = 0;
    int64_t heads = 0;
    double dropout = 0.0;     // of attention probabilities
    double deviation = 0.02;  // of initial weights
  };

  explicit BertSelfAttention(const Options& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "BertSelfAttention"; }
  int64_t heads() const override { return options_.heads; }
  bool causal() const override { return false; }

 private:
  std::optional<at::Tensor> added_to_scores(const at::Tensor& mask, const at::Tensor& queries) const;

  Options options_;
  Slot& query_;
  Slot& key_;
  Slot& value_;
};

// A Linear with transformers' initial values: weights normal with `standard_deviation`, biases zero.
std::shared_ptr<Layer> normal_linear(int64_t in, int64_t out, double standard_deviation, bool bias = true);

// The length of the longest sequence that all position tables and position biases of a model allow; 0 = no
// limit.
int64_t longest_sequence(Layer& root);

}  // namespace tutti

#pragma once

#include <vector>

#include "algorithms/surgery/options.h"
#include "models/layers/layer.h"
#include "recipe/setting.h"
#include "training/engine/algorithm.h"

namespace tutti {

// The slope of each head's bias: a geometric sequence from 2^(-8 / heads) if `heads` is a power of two. Press
// et al. 2022, arXiv:2108.12409, section 3; for other numbers, as in their published code.
std::vector<double> alibi_slopes(int64_t heads);

// What is added to attention scores, float32 on `device`: slope x place of the key, [heads, 1, length], if a
// token sees itself and earlier tokens only (the softmax of a row does not see where the row begins); else
// -slope x distance, [1, heads, length, length].
at::Tensor alibi_bias(int64_t heads, int64_t length, bool causal, at::Device device = at::kCPU);

// Replaces what a model knows of positions by ALiBi: every SelfAttention (models/layers/attention.h, which
// says how an attention of your own takes part) gets a bias for at most `max_sequence_length` tokens, and
// every PositionTable (models/layers/embedding.h) becomes a table of zeros with so many rows, which is not
// trained. Sequences may then be that long, whatever the model was built for. Returns the number of attention
// layers; if there is none, the model is left as it is. Call materialise afterwards.
// composer.functional.apply_alibi.
int apply_alibi(Layer& model, int64_t max_sequence_length);

// Cuts each sequence of a batch into shorter ones: tensors [N, T] become [N T / t, t], t = T x scaling
// rounded down, row by row, as views where possible. Throws UserError if a tensor is no [N, T], or t does not
// divide N T.
Batch cut_sequences(const Batch& batch, double scaling);

// composer.algorithms.Alibi. INIT: apply_alibi. AFTER_DATALOADER: cut_sequences of the training batches, so
// that training is on sequences shorter than those of evaluations; a scaling of 1 leaves batches as they are.
class Alibi final : public Algorithm {
 public:
  explicit Alibi(int64_t max_sequence_length, double train_sequence_length_scaling = 0.25)
      : Alibi(max_sequence_length,
              Setting(train_sequence_length_scaling, "train_sequence_length_scaling", {})) {}
  // The setting is named in errors.
  Alibi(int64_t max_sequence_length, Setting train_sequence_length_scaling)
      : max_sequence_length_(max_sequence_length), scaling_(std::move(train_sequence_length_scaling)) {}

  std::string name() const override { return "Alibi"; }
  Needs needs() const override {
    return {.excludes = {{name(), "positions are replaced once"}}, .required_on_load = true};
  }
  bool try_on(const State& state, Batch& sample) const override;
  bool match(Event event, const State& state) const override;
  // At INIT throws UserError if the samples of state.dataset cannot be cut.
  void apply(Event event, State& state, Logger& logger) override;

 private:
  void cut_batch(State& state) const;
  void require_divisible(const State& state) const;

  int64_t max_sequence_length_;
  Setting scaling_;
  bool has_effect_ = true;  // false: the model has no attention
};

}  // namespace tutti

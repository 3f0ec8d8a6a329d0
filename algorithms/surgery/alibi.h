#pragma once

#include <vector>

#include "algorithms/surgery/options.h"
#include "models/layers/layer.h"
#include "recipe/setting.h"
#include "training/engine/algorithm.h"

namespace tutti {

// The slope of each head's bias: a geometric sequence from 2^(-8 / heads) if `heads` is a power of two. Press
// et al. 2022, arXiv:2108.12409, section 3; for other numbers, as in the authors' code.
std::vector<double> alibi_slopes(int64_t heads);

// The bias of attention scores, float32 on `device`. If a token sees no later tokens: slope x position of the
// key, [heads, 1, length] (the softmax of a row ignores a constant offset). Else: -slope x distance, [1,
// heads, length, length].
at::Tensor alibi_bias(int64_t heads, int64_t length, bool causal, at::Device device);

// Replaces a model's position embeddings by ALiBi. Every SelfAttention (models/layers/attention.h, which also
// explains custom attention layers) gets a bias for at most `max_sequence_length` tokens. Every PositionTable
// (models/layers/embedding.h) becomes an untrained table of zeros with that many rows; LlamaAttention no
// longer rotates. Sequences may then have max_sequence_length tokens, for models of any built length. Returns
// the number of attention layers; a model without attention stays unchanged. Call materialise afterwards.
// composer.functional.apply_alibi.
int apply_alibi(Layer& model, int64_t max_sequence_length);

// Gives BERT's decoder weights of its own, which start as the token embeddings do and are not trained.
// Composer's surgery does so by copying the embeddings, and its optimizer gets the copies. Call materialise
// afterwards.
void untie_outputs(Layer& model);

// Cuts each sequence of a batch into shorter sequences: tensors [N, T] become [N T / t, t], t = T x scaling
// rounded down, row by row, as views where possible. Throws UserError if a tensor is no [N, T], or t does not
// divide N T.
Batch cut_sequences(const Batch& batch, double scaling);

// composer.algorithms.Alibi. INIT: apply_alibi, and untie_outputs in Composer's mode. AFTER_DATALOADER:
// cut_sequences of the training batches, so that training sequences are shorter than evaluation sequences; a
// scaling of 1 leaves lengths unchanged.
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

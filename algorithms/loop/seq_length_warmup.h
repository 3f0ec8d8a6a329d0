#pragma once

#include <cstdint>
#include <string>

#include "algorithms/loop/options.h"
#include "tensors/tree.h"
#include "training/engine/algorithm.h"

namespace tutti {

// The batch [N, T], all arrays alike, with sequences of `curr_seq_len`; unchanged if T <= curr_seq_len. With
// `truncate`, keeps the first columns of each array; the last real token (the last 1 of attention_mask) may
// be kept as the last column. Else each array is cut to whole sequences and reshaped to [N T / curr_seq_len,
// curr_seq_len]. Throws UserError for arrays that do not fit. composer.functional.set_batch_sequence_length.
Batch set_batch_sequence_length(const Batch& batch, int64_t curr_seq_len,
                                const SequenceLengthOptions& options = {});

// Trains on short sequences first: their length grows from min_seq_length to max_seq_length in steps of
// step_size over the first `duration` of a training counted in epochs or batches. Logs
// "seq_length_warmup/curr_seq_len" and "/curr_bs", this rank's samples. Li et al. 2021, arXiv:2108.06084;
// composer.algorithms.SeqLengthWarmup.
class SeqLengthWarmup final : public Algorithm {
 public:
  using Options = SeqLengthWarmupOptions;

  explicit SeqLengthWarmup(const Options& options) : options_(options) {}

  std::string name() const override { return "SeqLengthWarmup"; }
  Needs needs() const override {
    return {.after = {"Alibi"}, .excludes = {{name(), "sequences are as long as one of them says"}}};
  }
  bool try_on(const State& state, Batch& sample) const override;
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

  // Of the batch at the state's time. Throws UserError for a training that is not counted in epochs or
  // batches, or too short for the steps.
  int64_t length_at(const State& state) const;

 private:
  Options options_;
};

}  // namespace tutti

#include "algorithms/loop/seq_length_warmup.h"

#include <ATen/ops/slice_copy.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr const char* kMask = "attention_mask";

using Arrays = std::vector<std::pair<std::string, at::Tensor>>;

// The length of the first array that has one; 0 if none has.
int64_t length_of(const Arrays& arrays) {
  for (const auto& [name, array] : arrays)
    if (array.dim() > 1) return array.size(1);
  return 0;
}

void refuse(const std::string& array, const at::Tensor& tensor, const std::string& expected) {
  throw UserError("sequences: '" + array + "' is " + shape_text(tensor.sizes()) + ", not " + expected);
}

Batch truncated(const Batch& batch, int64_t length) {
  return batch.map([&](const at::Tensor& array) { return at::slice_copy(array, 1, 0, length); });
}

// The index of the last real token of each sequence, [N, 1]; without any the last index, as in Python.
at::Tensor last_tokens(const Batch& batch) {
  if (batch.find(kMask) == nullptr)
    throw UserError("sequences: preserve_end_of_sequence needs 'attention_mask' in the batch");
  const at::Tensor& mask = batch[kMask];
  return mask.sum(1, /*keepdim=*/true).to(at::kLong).sub(1).remainder(mask.size(1));
}

// Indices [N, 1] for an array [N, T, ...]: [N, 1, ...].
at::Tensor spread(at::Tensor indices, const at::Tensor& array) {
  Shape shape = array.sizes().vec();
  shape[1] = 1;
  while (indices.dim() < array.dim()) indices = indices.unsqueeze(-1);
  return indices.expand(shape);
}

Batch truncated_before_end(const Batch& batch, int64_t length) {
  const at::Tensor ends = last_tokens(batch), new_ends = ends.clamp_max(length - 1);
  return batch.map([&](const at::Tensor& array) {
    return array.narrow(1, 0, length)
        .scatter(1, spread(new_ends, array), array.gather(1, spread(ends, array)));
  });
}

Batch reshaped(const Batch& batch, int64_t length) {
  return batch.map([&](const at::Tensor& array) {
    const int64_t sequences = array.numel() / length;
    return array.flatten().narrow(0, 0, sequences * length).view({sequences, length});
  });
}

// Truncated arrays need a second dimension, reshaped ones must be of one shape.
void require_sequences(const Arrays& arrays, const SequenceLengthOptions& options) {
  for (const auto& [name, array] : arrays) {
    if (array.dim() < 2) refuse(name, array, "[N, length]");
    if (!options.truncate && array.sizes() != arrays[0].second.sizes())
      refuse(name, array, shape_text(arrays[0].second.sizes()) + " as '" + arrays[0].first + "'");
  }
}

}  // namespace

Batch set_batch_sequence_length(const Batch& batch, int64_t curr_seq_len,
                                const SequenceLengthOptions& options) {
  TUTTI_ASSERT(curr_seq_len > 0, "a sequence has a token at least");
  const Arrays arrays = batch.leaves();
  if (curr_seq_len >= length_of(arrays)) return batch;
  require_sequences(arrays, options);
  if (!options.truncate) return reshaped(batch, curr_seq_len);
  return options.preserve_end_of_sequence ? truncated_before_end(batch, curr_seq_len)
                                          : truncated(batch, curr_seq_len);
}

bool SeqLengthWarmup::try_on(const State& state, Batch& sample) const {
  length_at(state);
  const int64_t length = length_of(sample.leaves());
  if (length <= options_.min_seq_length)
    state.warn_on_rank_zero(
        name() + " has no effect: sequences of " + std::to_string(length) +
        " tokens are no longer than min_seq_length = " + std::to_string(options_.min_seq_length));
  sample = set_batch_sequence_length(sample, options_.min_seq_length, options_);
  return true;
}

bool SeqLengthWarmup::match(Event event, const State&) const { return event == Event::kAfterDataloader; }

void SeqLengthWarmup::apply(Event, State& state, Logger& logger) {
  const int64_t length = length_at(state);
  if (length == options_.max_seq_length) TUTTI_PROBE("sequence length: the warm-up is over");
  state.set_batch(set_batch_sequence_length(state.batch, length, options_));
  logger.log_metrics({{"seq_length_warmup/curr_seq_len", static_cast<double>(length)},
                      {"seq_length_warmup/curr_bs", static_cast<double>(state.batch.samples())}});
}

int64_t SeqLengthWarmup::length_at(const State& state) const {
  const Time& whole = state.max_duration;
  if (whole.unit() != TimeUnit::kEpoch && whole.unit() != TimeUnit::kBatch)
    throw UserError("expected a max_duration in epochs or batches, not " + whole.text());
  const int64_t batches = whole.count() * (whole.unit() == TimeUnit::kEpoch ? state.dataloader_len : 1);
  const auto warmup = static_cast<int64_t>(static_cast<double>(batches) * options_.duration);
  const int64_t updates = (options_.max_seq_length - options_.min_seq_length) / options_.step_size;
  if (updates == 0 || warmup < updates)
    throw UserError(std::to_string(updates) + " steps of the length in " + std::to_string(warmup) +
                    " batches of warm-up; both are needed, a batch a step at least");
  const int64_t length =
      options_.step_size * (state.timestamp.batch / (warmup / updates)) + options_.min_seq_length;
  return std::clamp(length, options_.min_seq_length, options_.max_seq_length);
}

AlgorithmPtr SeqLengthWarmupOptions::make(const Setting& section) const {
  if (max_seq_length - min_seq_length < step_size)
    section.at("max_seq_length").fail("expected min_seq_length and one step_size at least");
  return std::make_shared<SeqLengthWarmup>(*this);
}

}  // namespace tutti

#include "algorithms/surgery/alibi.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "algorithms/augmentation/fit.h"
#include "algorithms/surgery/effect.h"
#include "data/dataset.h"
#include "models/layers/attention.h"
#include "models/layers/embedding.h"
#include "runtime/error.h"
#include "tensors/device.h"
#include "tensors/kernels/graph.h"
#include "training/state.h"

namespace tutti {
namespace {

int64_t cut_length(int64_t length, double scaling) {
  return static_cast<int64_t>(static_cast<double>(length) * scaling);
}

std::string why_not_cut(int64_t length, int64_t shorter) {
  return "sequences of " + std::to_string(length) + " tokens cannot be cut into whole ones of " +
         std::to_string(shorter);
}

at::Tensor cut(const at::Tensor& rows, double scaling) {
  if (rows.dim() != 2)
    throw UserError("Alibi: a tensor " + shape_text(rows.sizes()) +
                    " of the batch is no sequence a sample, and cannot be cut into shorter ones");
  const int64_t shorter = cut_length(rows.size(1), scaling);
  if (shorter == 0 || rows.numel() % shorter != 0)
    throw UserError("Alibi: " + std::to_string(rows.size(0)) + " " + why_not_cut(rows.size(1), shorter));
  return rows.reshape({rows.numel() / shorter, shorter});
}

// [heads]; a graph has the numbers in its kernels, since it cannot copy from the host.
at::Tensor slopes_on(at::Device device, int64_t heads) {
  const std::vector<double> slopes = alibi_slopes(heads);
  if (!records_graph()) return copy_to_device(at::tensor(slopes, at::kFloat), device);
  at::Tensor filled = at::empty({heads}, at::TensorOptions(at::kFloat).device(device));
  for (int64_t i = 0; i < heads; ++i) filled.select(0, i).fill_(slopes[static_cast<std::size_t>(i)]);
  return filled;
}

}  // namespace

std::vector<double> alibi_slopes(int64_t heads) {
  const auto whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  const double start = std::exp2(-std::exp2(3.0 - std::log2(static_cast<double>(whole))));
  std::vector<double> slopes;
  for (int64_t i = 0; i < whole; ++i) slopes.push_back(start * std::pow(start, static_cast<double>(i)));
  if (whole == heads) return slopes;
  const std::vector<double> finer = alibi_slopes(2 * whole);
  for (int64_t i = 0; i < heads - whole; ++i) slopes.push_back(finer[static_cast<std::size_t>(2 * i)]);
  return slopes;
}

at::Tensor alibi_bias(int64_t heads, int64_t length, bool causal, at::Device device) {
  const at::Tensor slopes = slopes_on(device, heads).view({heads, 1, 1});
  const at::Tensor places = at::arange(length, at::TensorOptions(at::kLong).device(device));
  if (causal) return slopes * places;
  const at::Tensor distances = (places.unsqueeze(0) - places.unsqueeze(1)).abs_();
  return (slopes * distances.neg_()).unsqueeze(0);
}

int apply_alibi(Layer& model, int64_t max_sequence_length) {
  int changed = 0;
  for (const auto& [name, layer] : layers(model)) {
    auto* attention = dynamic_cast<SelfAttention*>(layer);
    if (!attention) continue;
    const auto bias = [heads = attention->heads(), causal = attention->causal()](int64_t length,
                                                                                 at::Device device) {
      return alibi_bias(heads, length, causal, device);
    };
    attention->set_position_bias(bias, max_sequence_length);
    ++changed;
  }
  if (changed == 0) return 0;
  replace_layers(model, [&](const NamedSlot& named) -> std::shared_ptr<Layer> {
    const auto* table = dynamic_cast<const PositionTable*>(&named.slot->layer());
    return table ? std::make_shared<ZeroPositions>(max_sequence_length, table->features()) : nullptr;
  });
  return changed;
}

void untie_outputs(Layer& model) {
  for (const auto& [name, layer] : layers(model))
    if (auto* tied = dynamic_cast<TiedOutput*>(layer)) tied->untie();
}

Batch cut_sequences(const Batch& batch, double scaling) {
  return batch.map([scaling](const at::Tensor& rows) { return cut(rows, scaling); });
}

// The first of the shorter sequences.
bool Alibi::try_on(const State&, Batch& sample) const {
  const double scaling = scaling_.number();
  if (!has_effect_ || scaling == 1.0) return false;
  sample = sample.map(
      [&](const at::Tensor& rows) { return rows.narrow(1, 0, cut_length(rows.size(1), scaling)); });
  return true;
}

bool Alibi::match(Event event, const State&) const {
  return event == Event::kInit || event == Event::kAfterDataloader;
}

void Alibi::apply(Event event, State& state, Logger&) {
  const bool cuts = scaling_.number() != 1.0;
  if (event == Event::kInit) {
    const int changed = apply_alibi(*state.model, max_sequence_length_);
    has_effect_ = changed > 0;
    if (has_effect_ && state.composer) untie_outputs(*state.model);
    if (has_effect_ && cuts) require_divisible(state);
    warn_without_effect(state, changed, name(),
                        "attention that takes a position bias (SelfAttention in models/layers/attention.h)");
  } else if (has_effect_ && cuts) {
    cut_batch(state);
  }
}

// An algorithm that acts before may have left too few sequences.
void Alibi::cut_batch(State& state) const try {
  state.set_batch(cut_sequences(state.batch, scaling_.number()));
} catch (const UserError& error) {
  scaling_.fail(error);
}

void Alibi::require_divisible(const State& state) const {
  if (!state.dataset || state.global_batch == 0) return;
  const auto shapes = state.dataset->spec().shapes;
  for (const auto& [name, shape] : shapes) {
    if (shape.size() != 1)
      scaling_.fail("the data's '" + name + "' is " + shape_text(shape) +
                    " a sample, and no sequence to be cut into shorter ones; 1 leaves batches as they are");
    const int64_t length = shape[0], shorter = cut_length(length, scaling_.number());
    const auto fits = [&](int64_t samples) { return shorter > 0 && samples * length % shorter == 0; };
    const auto parts = samples_of_ranks(state);
    if (!std::all_of(parts.begin(), parts.end(), fits)) scaling_.fail(why_not_cut(length, shorter));
    const auto& [other, same] = *shapes.begin();  // a sequence, since the loop has passed this array
    if (length * cut_length(same[0], scaling_.number()) != same[0] * shorter)
      scaling_.fail("the data's '" + other + "' has " + std::to_string(same[0]) + " tokens a sample and '" +
                    name + "' " + std::to_string(length) +
                    ", which are not cut into as many sequences; 1 leaves batches as they are");
  }
}

AlgorithmPtr AlibiOptions::make(const Setting& section) const {
  return std::make_shared<Alibi>(max_sequence_length, section.at("train_sequence_length_scaling"));
}

}  // namespace tutti

#include "actors/microbatches.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

#include "runtime/random.h"
#include "tensors/process_state.h"

namespace tutti {

Microbatches::Microbatches(Trainee& trainee, GradientBuckets* buckets, int count, uint64_t seed,
                           int memory_slot)
    : trainee_(trainee), buckets_(buckets), seed_(seed), memory_slot_(memory_slot) {
  for (const auto& [name, layer] : layers(*trainee.model)) {
    if (layer->statistics_channels() == 0) continue;
    normalising_.push_back(layer);
    statistics_stride_ += 2 * layer->statistics_channels() + 1;
  }
  context_.statistics = &found_;
  set_count(count);
}

void Microbatches::set_count(int count) {
  count_ = count;
  statistics_ = statistics_size() > 0 ? at::zeros({statistics_size()}) : at::Tensor();
}

MicrobatchResult Microbatches::run(const Batch& batch, int64_t step, const Trace& trace) {
  MicrobatchResult result;
  result.samples = batch.samples();
  result.tokens = trainee_.model->tokens(batch);
  if (statistics_.defined()) result.statistics = statistics_.zero_();
  const int64_t held = Meter::scoped_bytes(memory_slot_);
  result.shortage = try_parts(batch, step, trace, result);
  found_.clear();
  if (!result.shortage) return result;
  abandon(result);
  result.leftover_bytes = Meter::scoped_bytes(memory_slot_) - held;
  return result;
}

std::optional<MemoryShortage> Microbatches::try_parts(const Batch& batch, int64_t step, const Trace& trace,
                                                      MicrobatchResult& result) {
  MemoryScope scope(memory_slot_);
  try {
    run_parts(batch, step, trace, result);
    return std::nullopt;
  } catch (const c10::OutOfMemoryError&) {
    return scope.shortage().value_or(MemoryShortage());
  }
}

void Microbatches::run_parts(const Batch& batch, int64_t step, const Trace& trace, MicrobatchResult& result) {
  if (buckets_) buckets_->begin_step();
  set_context(*trainee_.model, &context_);
  const int64_t part = (result.samples + count_ - 1) / count_;
  for (int m = 0; m < count_; ++m) {
    if (buckets_ && m + 1 == count_) buckets_->begin_last_microbatch();
    const int64_t first = m * part;
    const int64_t size = std::min(part, result.samples - first);
    if (size <= 0) continue;
    trace("microbatch", m);
    seed_default_generator(Draw(seed_, "microbatch").at(step).at(m).bits());
    found_.clear();
    train(count_ == 1 ? batch : batch.narrow(first, size), result);
    store_statistics(m, found_, result.statistics);
  }
  if (buckets_) buckets_->end_step();
}

void Microbatches::abandon(MicrobatchResult& result) {
  sweep_.run();
  for (const auto& view : trainee_.views)
    if (view.tensor.grad().defined())
      result.gradient_bytes += static_cast<int64_t>(view.tensor.grad().nbytes());
  if (buckets_) buckets_->abandon_step();
  end_step();
}

void Microbatches::end_step() {
  if (buckets_) return;
  for (auto& view : trainee_.views) view.tensor.mutable_grad() = view.grad = at::Tensor();
}

void Microbatches::train(const Batch& part, MicrobatchResult& result) {
  Model& model = *trainee_.model;
  const auto weight = static_cast<double>(model.loss_weight(part));
  if (weight == 0) return;  // a mean over nothing is no number
  at::Tensor loss;
  {
    const Outputs outputs = model.forward(part);
    loss = model.loss(outputs, part);
  }
  const double value = loss.item<double>();
  result.finite = result.finite && std::isfinite(value);
  result.loss_sum += value * weight;
  result.loss_weight += weight;
  loss.backward(at::full_like(loss, weight));
}

void Microbatches::store_statistics(int microbatch, const std::vector<RunningStatistics>& found,
                                    at::Tensor& to) const {
  int64_t at = microbatch * statistics_stride_;
  for (Layer* layer : normalising_) {
    const int64_t channels = layer->statistics_channels();
    for (const auto& one : found) {
      if (one.layer != layer) continue;
      to.narrow(0, at, channels).copy_(one.mean);
      to.narrow(0, at + channels, channels).copy_(one.variance);
      to.data_ptr<float>()[at + 2 * channels] = static_cast<float>(one.samples);
    }
    at += 2 * channels + 1;
  }
}

void Microbatches::apply_statistics(const at::Tensor& gathered) {
  const at::Tensor flat = gathered.view({-1});
  int64_t at = 0;
  while (at < flat.numel()) {
    for (Layer* layer : normalising_) {
      const int64_t channels = layer->statistics_channels();
      const auto samples = static_cast<int64_t>(flat.data_ptr<float>()[at + 2 * channels]);
      if (samples > 0)
        layer->apply_statistics(
            {layer, flat.narrow(0, at, channels), flat.narrow(0, at + channels, channels), samples});
      at += 2 * channels + 1;
    }
  }
}

}  // namespace tutti

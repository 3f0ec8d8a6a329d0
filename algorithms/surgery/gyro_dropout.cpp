#include "algorithms/surgery/gyro_dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

#include "algorithms/surgery/effect.h"
#include "data/dataset.h"
#include "models/layers/activation.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "tensors/device.h"
#include "training/state.h"

namespace tutti {
namespace {

int64_t steps_of_a_choice(int64_t iters_per_epoch, int64_t max_epoch, const GyroDropoutOptions& options) {
  const int64_t steps = iters_per_epoch * max_epoch;
  if (steps < options.sigma)
    throw UserError("sigma = " + std::to_string(options.sigma) +
                    " masks are more than the training has steps: " + std::to_string(steps));
  return steps / options.sigma * options.tau;
}

struct TrainingLength {
  int64_t iters_per_epoch, max_epoch;
};

TrainingLength length_of(const State& state) {
  const auto count = static_cast<int64_t>(state.max_duration.value());
  if (state.max_duration.unit() == TimeUnit::kEpoch) return {state.dataloader_len, count};
  if (state.max_duration.unit() == TimeUnit::kBatch) return {count, 1};
  throw UserError("expected a max_duration in epochs or batches, not " + state.max_duration.text());
}

// The dimension of the features of [N, ..., F] and of images [N, C, H, W].
int64_t dim_of_features(const at::Tensor& x) { return x.dim() >= 4 ? 1 : x.dim() - 1; }

Shape shape_of_masks(const at::Tensor& x) {
  Shape shape(static_cast<std::size_t>(x.dim()), 1);
  shape.front() = x.size(0);
  shape[static_cast<std::size_t>(dim_of_features(x))] = x.size(dim_of_features(x));
  return shape;
}

}  // namespace

GyroDropoutLayer::GyroDropoutLayer(std::string name, int64_t iter_num, const GyroDropoutOptions& options,
                                   const State* run)
    : name_(std::move(name)), iter_num_(iter_num), options_(options), run_(run) {}

TensorTree GyroDropoutLayer::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  if (!context().training || x.numel() == 0) return input;
  choose_masks(x.size(dim_of_features(x)));
  const at::Tensor masks = copy_to_device(masks_of(x.size(0)).to(x.scalar_type()), x.device());
  return x * masks.view(shape_of_masks(x)) * (1.0 / (1.0 - options_.p));
}

// Masks are kept in plain memory: what a step that runs out of memory has allocated is to be freed.
void GyroDropoutLayer::choose_masks(int64_t features) {
  const int64_t step = run_ ? run_->timestamp.batch : calls_++, round = step / iter_num_;
  if (round == round_ && features == features_) return;
  if (features == features_) TUTTI_PROBE("gyro dropout: other masks are picked");
  if (run_ && features != features_ && round > 0) TUTTI_PROBE("resume: gyro dropout draws its masks again");
  const auto numbers = draws("masks", 0);
  if (features != features_) {
    const at::Tensor kept = numbers->uniforms({options_.sigma, features}).gt(options_.p).to(at::kFloat);
    masks_.assign(kept.const_data_ptr<float>(), kept.const_data_ptr<float>() + kept.numel());
  }
  const auto choices = run_ ? draws("picks", round * iter_num_) : nullptr;
  picks_.clear();
  for (int64_t pick = 0; pick < options_.tau; ++pick)
    picks_.push_back((choices ? *choices : *numbers).integer(0, options_.sigma));
  features_ = features;
  round_ = round;
}

std::unique_ptr<Draws> GyroDropoutLayer::draws(const std::string& what, int64_t step) const {
  const std::string name = "GyroDropout " + name_ + ' ' + what;
  if (!run_) return context().draws(name);
  const DrawKey key{name, step, 0};
  return run_->draw_source ? run_->draw_source(key) : make_draws(run_->seed, key);
}

// [rows, features]. The texts of a pair have masks of neighbouring parts: alike, they would have no noise of
// their own.
at::Tensor GyroDropoutLayer::masks_of(int64_t rows) const {
  const int64_t sample_rows = run_ ? context().rows_of_sample : 1, samples = rows / sample_rows;
  const int64_t first = run_ ? context().first_sample : 0, all = batch_samples(samples);
  const int64_t rank_place = run_ ? part_of_rank(all, run_->topology).first : 0;
  const double kept = run_ ? run_->kept_samples : 1.0;
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t sample = first - rank_place + i / sample_rows;
    const int64_t place = rank_place + static_cast<int64_t>(static_cast<double>(sample) / kept);
    const int64_t part = place * options_.tau / all + i % sample_rows;
    chosen.push_back(picks_[static_cast<std::size_t>(part % options_.tau)]);
  }
  const at::Tensor masks =
      at::from_blob(const_cast<float*>(masks_.data()), {options_.sigma, features_}, at::kFloat);
  return masks.index_select(0, at::tensor(chosen, at::kLong));
}

// Of the global batch; the last one of an epoch may be smaller.
int64_t GyroDropoutLayer::batch_samples(int64_t here) const {
  if (!run_ || run_->global_batch == 0) return here;
  const int64_t left = run_->train_samples - run_->timestamp.batch_in_epoch * run_->global_batch;
  return left > 0 ? std::min(run_->global_batch, left) : run_->global_batch;
}

int apply_gyro_dropout(Layer& model, int64_t iters_per_epoch, int64_t max_epoch,
                       const GyroDropoutOptions& options, const State* run) {
  const int64_t iter_num = steps_of_a_choice(iters_per_epoch, max_epoch, options);
  const auto replaced = replace_layers(model, [&](const NamedSlot& named) -> std::shared_ptr<Layer> {
    if (!dynamic_cast<const Dropout*>(&named.slot->layer())) return nullptr;
    return std::make_shared<GyroDropoutLayer>(named.name, iter_num, options, run);
  });
  return static_cast<int>(replaced.size());
}

void GyroDropout::require(const State& state) const try {
  const TrainingLength length = length_of(state);
  steps_of_a_choice(length.iters_per_epoch, length.max_epoch, options_);
} catch (const UserError& error) {
  fail(error.what());
}

// A program may train several times.
void GyroDropout::apply(Event, State& state, Logger&) {
  if (std::exchange(done_, true)) return;
  const TrainingLength length = length_of(state);
  const int replaced =
      apply_gyro_dropout(*state.model, length.iters_per_epoch, length.max_epoch, options_, &state);
  warn_without_effect(state, replaced, name(), "Dropout");
}

AlgorithmPtr GyroDropoutOptions::make(const Setting&) const { return std::make_shared<GyroDropout>(*this); }

}  // namespace tutti

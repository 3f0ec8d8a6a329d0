#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/surgery/options.h"
#include "models/layers/layer.h"
#include "training/engine/algorithm.h"

namespace tutti {

// Dropout with few masks: `sigma` masks are drawn once, and `tau` masks among the `sigma`, with replacement,
// every `iter_num` steps. Each of the tau masks applies to one of tau consecutive parts of the batch, whose
// sizes differ by at most one sample. In training y = x mask / (1 - p), over features: the last dimension of
// x [N, ..., F], the channels of images [N, C, H, W]. Lee, Park et al. 2022, MLSys.
class GyroDropoutLayer final : public Layer {
 public:
  // `run`: the training; must outlive the layer's forward passes. Masks are then a function of the run's
  // seed, its step and `name`, and a sample's mask depends on its place in the global batch: the same for any
  // number of ranks and microbatches, and in a resumed run. Null: the layer counts its own calls in training,
  // a call per batch.
  GyroDropoutLayer(std::string name, int64_t iter_num, const GyroDropoutOptions& options, const State* run);

  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "GyroDropoutLayer"; }

 private:
  void choose_masks(int64_t features);
  at::Tensor masks_of(int64_t rows) const;
  std::unique_ptr<Draws> draws(const std::string& what, int64_t step) const;
  int64_t batch_samples(int64_t here) const;

  std::string name_;
  int64_t iter_num_;
  GyroDropoutOptions options_;
  const State* run_;
  int64_t calls_ = 0;
  int64_t round_ = -1;          // of choices of masks
  int64_t features_ = 0;        // of the masks
  std::vector<float> masks_;    // [sigma, features], 0 = dropped
  std::vector<int64_t> picks_;  // [tau] of the masks
};

// Replaces every Dropout of a model by a GyroDropoutLayer, with the same p. Masks are chosen anew every
// int(iters_per_epoch * max_epoch / sigma) * tau steps. Returns the number of replaced layers. Throws
// UserError if there are fewer steps than sigma. composer.functional.apply_gyro_dropout.
int apply_gyro_dropout(Layer& model, int64_t iters_per_epoch, int64_t max_epoch,
                       const GyroDropoutOptions& options = {}, const State* run = nullptr);

// apply_gyro_dropout at FIT_START, for a training whose length is in epochs or batches. A resumed run has the
// masks of an uninterrupted run. composer.algorithms.GyroDropout.
class GyroDropout final : public Algorithm {
 public:
  explicit GyroDropout(const GyroDropoutOptions& options = {}) : options_(options) {}

  std::string name() const override { return "GyroDropout"; }
  void require(const State& state) const override;
  bool match(Event event, const State&) const override { return event == Event::kFitStart; }
  void apply(Event event, State& state, Logger& logger) override;

 private:
  GyroDropoutOptions options_;
  bool done_ = false;
};

}  // namespace tutti

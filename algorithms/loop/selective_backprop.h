#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/loop/options.h"
#include "data/batch_key.h"
#include "tensors/draws.h"
#include "training/engine/algorithm.h"

namespace tutti {

// True from fraction `start` up to fraction `end` of the training, but not in every `interrupt`-th batch of
// an epoch; 0 = no exceptions. composer.functional.should_selective_backprop.
bool should_selective_backprop(double current_duration, int64_t batch_idx, double start = 0.5,
                               double end = 0.9, int64_t interrupt = 2);

// Keeps int(keep * N) samples of a batch, at least 1, preferably samples of high loss; 0 < keep <= 1. `model`
// gives the outputs for an input, `loss_fun` the losses [N] of outputs and targets; neither is
// differentiated. With a scale_factor below 1 the model sees a smaller input, [N, C, L], [N, C, H, W] or [N,
// C, D, H, W], while the returned input keeps its size. Source: Jiang et al. 2019, arXiv:1910.00762.
// composer.functional.select_using_loss.
std::pair<at::Tensor, at::Tensor> select_using_loss(
    const at::Tensor& input, const at::Tensor& target,
    const std::function<at::Tensor(const at::Tensor& input)>& model,
    const std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& target)>& loss_fun,
    Draws& draws, double keep = 0.5, double scale_factor = 1.0);

// The steps of select_using_loss. The model's input: (bi-, tri-)linearly interpolated, corners not aligned.
at::Tensor scaled_input(const at::Tensor& input, double scale_factor);
// The probability of drawing the sample with the r-th lowest loss (r from 0), proportional to ((r + 0.5) /
// samples)^(1 / keep - 1); all sum to 1.
std::vector<double> selection_probabilities(int64_t samples, double keep);
// The chosen samples, int64 [int(keep * N), at least 1], in the order drawn.
at::Tensor choose_by_loss(const at::Tensor& losses, double keep, Draws& draws);

// Trains on the samples that select_using_loss keeps of each rank's batch, in all arrays. The additional
// forward pass is in training mode and has as many parts as there are microbatches.
// composer.algorithms.SelectiveBackprop.
class SelectiveBackprop final : public Algorithm {
 public:
  using Options = SelectiveBackpropOptions;

  explicit SelectiveBackprop(Options options) : options_(std::move(options)) {}

  std::string name() const override { return "SelectiveBackprop"; }
  Needs needs() const override { return {.first = true}; }
  void require(const State& state) const override;  // warns if it never acts
  bool try_on(const State& state, Batch& sample) const override;
  bool match(Event event, const State& state) const override;
  int64_t forwards(const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

 private:
  at::Tensor losses_of(const State& state, const Batch& batch) const;

  Options options_;
};

}  // namespace tutti

#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <utility>

#include "tensors/batch_key.h"
#include "tensors/draws.h"
#include "training/engine/algorithm.h"

namespace tutti {

struct ColOutOptions {
  double p_row = 0.15;  // part of the rows that is dropped
  double p_col = 0.15;  // part of the columns
  std::optional<bool> resize_target =
      {};  // not given: if the target [N, ..., H, W] is as large as the images
};

// The images [..., H, W] without some rows and columns, the same ones of all images, in a new tensor:
// int((1 - p) * size) remain, in their order. composer.functional.colout_batch.
at::Tensor colout_batch(const at::Tensor& input, Draws& draws, const ColOutOptions& options = {});
// Images and targets; the same rows and columns are dropped from the target if the options say so.
std::pair<at::Tensor, at::Tensor> colout_batch(const at::Tensor& input, const at::Tensor& target,
                                               Draws& draws, const ColOutOptions& options = {});

// Drops the same rows and columns, drawn once a batch, from all images of all ranks.
// composer.algorithms.ColOut.
class ColOut final : public Algorithm {
 public:
  explicit ColOut(const ColOutOptions& options = {}, BatchKey input_key = "input",
                  BatchKey target_key = "target")
      : options_(options), input_key_(std::move(input_key)), target_key_(std::move(target_key)) {}

  std::string name() const override { return "ColOut"; }
  void require(const State& state) const override;
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

 private:
  void drop(Batch& batch, Draws& draws) const;

  ColOutOptions options_;
  BatchKey input_key_;
  BatchKey target_key_;
};

}  // namespace tutti

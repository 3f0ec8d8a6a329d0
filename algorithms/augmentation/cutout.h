#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "algorithms/augmentation/box.h"
#include "tensors/batch_key.h"
#include "training/engine/algorithm.h"

namespace tutti {

struct CutOutOptions {
  int64_t num_holes = 1;
  double length = 0.5;  // side of a hole, as a part of min(H, W)
  bool uniform_sampling = false;
};

// Sets the holes of all images [..., H, W] to 0, in a new tensor. DeVries and Taylor 2017, arXiv:1708.04552.
// composer.functional.cutout_batch.
at::Tensor cutout_batch(const at::Tensor& input, std::span<const Box> holes);
// Draws the holes: squares of side int(length * min(H, W)), less 1 if that is odd.
at::Tensor cutout_batch(const at::Tensor& input, Draws& draws, const CutOutOptions& options = {});

// Cuts the same holes, drawn once a batch, out of all images of all ranks. composer.algorithms.CutOut.
class CutOut final : public Algorithm {
 public:
  explicit CutOut(const CutOutOptions& options, BatchKey input_key = "input")
      : options_(options), input_key_(std::move(input_key)) {}

  std::string name() const override { return "CutOut"; }
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

 private:
  CutOutOptions options_;
  BatchKey input_key_;
};

}  // namespace tutti

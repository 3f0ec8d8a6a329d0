#pragma once

#include <string>
#include <utility>

#include "algorithms/augmentation/options.h"
#include "data/transforms/augmentations/cutout.h"
#include "training/engine/algorithm.h"

namespace tutti {

// Cuts the same holes, drawn once a batch, out of all images of all ranks. cutout_batch is in
// data/transforms/augmentations/cutout.h. composer.algorithms.CutOut.
class CutOut final : public Algorithm {
 public:
  explicit CutOut(const CutOutOptions& options, BatchKey input_key = "input")
      : options_(options), input_key_(std::move(input_key)) {}

  std::string name() const override { return "CutOut"; }
  bool try_on(const State& state, Batch& sample) const override;
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

 private:
  CutOutOptions options_;
  BatchKey input_key_;
};

}  // namespace tutti

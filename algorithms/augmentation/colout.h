#pragma once

#include <string>
#include <utility>

#include "algorithms/augmentation/options.h"
#include "data/transforms/augmentations/colout.h"
#include "training/engine/algorithm.h"

namespace tutti {

// With `batch`, drops the same rows and columns, drawn once a batch, from all images of all ranks. Else a
// transform draws rows and columns for each image of the training data. colout_batch is in
// data/transforms/augmentations/colout.h. composer.algorithms.ColOut.
class ColOut final : public Algorithm {
 public:
  using Options = ColOutAlgorithm;

  explicit ColOut(Options options) : options_(std::move(options)) {}

  std::string name() const override { return "ColOut"; }
  bool try_on(const State& state, Batch& sample) const override;
  Event tried_at() const override { return options_.batch ? Event::kAfterDataloader : Event::kFitStart; }
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

 private:
  void drop(Batch& batch, Draws& draws) const;
  TransformPtr transform() const { return colout_transform(options_.p_row, options_.p_col); }

  Options options_;
};

}  // namespace tutti

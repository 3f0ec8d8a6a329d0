#pragma once

#include <string>
#include <utility>

#include "algorithms/augmentation/options.h"
#include "data/transforms/augmentations/augmix.h"
#include "data/transforms/augmentations/randaugment.h"
#include "data/transforms/transform.h"
#include "training/engine/algorithm.h"

namespace tutti {

// An algorithm that is a transform of the training data: at FIT_START the transform joins the data's own
// transforms, before to_tensor. Samples draw by (seed, name of the algorithm, epoch, sample), in a resumed
// run too.
class AddedTransform : public Algorithm {
 public:
  std::string name() const final { return name_; }
  bool try_on(const State& state, Batch& sample) const final;
  Event tried_at() const final { return Event::kFitStart; }
  bool match(Event event, const State&) const final { return event == Event::kFitStart; }
  void apply(Event event, State& state, Logger& logger) final;

 protected:
  AddedTransform(std::string name, TransformPtr transform)
      : name_(std::move(name)), transform_(std::move(transform)) {}

 private:
  std::string name_;
  TransformPtr transform_;
};

// Applies augmix_image (data/transforms/augmentations/augmix.h) to each image of the training data.
// composer.algorithms.AugMix.
class AugMix final : public AddedTransform {
 public:
  // Throws UserError for options out of range.
  explicit AugMix(const AugMixOptions& options = {}) : AddedTransform("AugMix", augmix_transform(options)) {}
};

// Applies randaugment_image (data/transforms/augmentations/randaugment.h) to each image of the training data.
// composer.algorithms.RandAugment.
class RandAugment final : public AddedTransform {
 public:
  // Throws UserError for options out of range.
  explicit RandAugment(const RandAugmentOptions& options = {})
      : AddedTransform("RandAugment", randaugment_transform(options)) {}
};

}  // namespace tutti

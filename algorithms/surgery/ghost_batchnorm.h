#pragma once

#include "algorithms/surgery/options.h"
#include "models/layers/norm.h"
#include "training/engine/algorithm.h"

namespace tutti {

// The action of a ghost batch normalisation in training with fewer samples than a ghost batch.
enum class SmallBatch { kNormalise, kRefuse };

// A BatchNorm over ghost batches. In training n samples are cut into k = ceil(n / ghost_batch_size) parts of
// ceil(n / k); the last may be smaller. Each part is normalised apart, and updates the running statistics
// with 1 / k of the momentum. In evaluation the layer is the BatchNorm in its slot "batchnorm". Hoffer et al.
// 2017, arXiv:1705.08741; composer's GhostBatchNorm1d, 2d and 3d.
class GhostBatchNormLayer final : public Layer {
 public:
  GhostBatchNormLayer(std::shared_ptr<BatchNorm> batchnorm, int64_t ghost_batch_size, SmallBatch small);
  // Throws UserError for too few samples under SmallBatch::kRefuse.
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "GhostBatchNorm"; }

 private:
  BatchNorm& norm_;
  Slot& batchnorm_;
  int64_t ghost_batch_size_;
  SmallBatch small_;
};

// Replaces every BatchNorm of a model by a GhostBatchNorm, which keeps its weights and running statistics:
// "bn1.weight" becomes "bn1.batchnorm.weight". Existing ghost batch normalisations stay. Returns the number
// of replaced layers. composer.functional.apply_ghost_batchnorm, which refuses small batches.
int apply_ghost_batchnorm(Layer& model, int64_t ghost_batch_size = 32,
                          SmallBatch small = SmallBatch::kNormalise);

// apply_ghost_batchnorm at INIT. A rank's batch must have ghost_batch_size samples; microbatches and the last
// batch of an epoch may have fewer, unless in Composer's mode. composer.algorithms.GhostBatchNorm.
class GhostBatchNorm final : public Algorithm {
 public:
  explicit GhostBatchNorm(int64_t ghost_batch_size = 32) : ghost_batch_size_(ghost_batch_size) {}

  std::string name() const override { return "GhostBatchNorm"; }
  Needs needs() const override { return {.required_on_load = true}; }
  void require(const State& state) const override;
  bool match(Event event, const State&) const override { return event == Event::kInit; }
  void apply(Event event, State& state, Logger& logger) override;

 private:
  int64_t ghost_batch_size_;
  bool has_effect_ = false;  // the model has a BatchNorm
};

}  // namespace tutti

#include "algorithms/surgery/ghost_batchnorm.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <set>

#include "algorithms/augmentation/fit.h"
#include "algorithms/surgery/effect.h"
#include "data/dataset.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

// The layers within ghost batch normalisations.
std::set<const Layer*> already_ghosts(Layer& model) {
  std::set<const Layer*> norms;
  for (const auto& [name, layer] : layers(model))
    if (dynamic_cast<const GhostBatchNormLayer*>(layer)) norms.insert(&layer->slots()[0]->layer());
  return norms;
}

// The samples of the smallest microbatch.
int64_t last_microbatch(int64_t samples, const State& state) {
  const int64_t given = state.device_train_microbatch_size;
  const int64_t size = given > 0 ? given : largest_part(samples, state.grad_accum);
  return samples - (samples - 1) / size * size;
}

// A norm's momentum, scaled; as before at the end, also if memory runs out.
class ScaledMomentum {
 public:
  ScaledMomentum(BatchNorm& norm, double factor) : norm_(norm), before_(norm.options().momentum) {
    norm_.set_momentum(before_ * factor);
  }
  ~ScaledMomentum() { norm_.set_momentum(before_); }
  ScaledMomentum(const ScaledMomentum&) = delete;

 private:
  BatchNorm& norm_;
  double before_;
};

}  // namespace

GhostBatchNormLayer::GhostBatchNormLayer(std::shared_ptr<BatchNorm> batchnorm, int64_t ghost_batch_size,
                                         SmallBatch small)
    : norm_(*batchnorm),
      batchnorm_(add_slot("batchnorm", std::move(batchnorm))),
      ghost_batch_size_(ghost_batch_size),
      small_(small) {
  TUTTI_ASSERT(ghost_batch_size > 0, "a ghost batch of no samples");
}

TensorTree GhostBatchNormLayer::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  const int64_t samples = x.size(0);
  if (!context().training) return batchnorm_(input);
  if (samples < ghost_batch_size_ && small_ == SmallBatch::kRefuse)
    throw UserError("GhostBatchNorm: a batch of " + std::to_string(samples) +
                    " samples has fewer than ghost_batch_size = " + std::to_string(ghost_batch_size_));
  const int64_t parts = (samples + ghost_batch_size_ - 1) / ghost_batch_size_;
  if (parts <= 1) return batchnorm_(input);
  const ScaledMomentum scaled(norm_, 1.0 / static_cast<double>(parts));
  std::vector<at::Tensor> normal = x.chunk(parts);
  for (at::Tensor& part : normal) part = batchnorm_(part);
  return at::cat(normal);
}

int apply_ghost_batchnorm(Layer& model, int64_t ghost_batch_size, SmallBatch small) {
  const std::set<const Layer*> ghosts = already_ghosts(model);
  const auto replaced = replace_layers(model, [&](const NamedSlot& named) -> std::shared_ptr<Layer> {
    auto norm = std::dynamic_pointer_cast<BatchNorm>(named.slot->share());
    if (!norm || ghosts.contains(norm.get())) return nullptr;
    return std::make_shared<GhostBatchNormLayer>(std::move(norm), ghost_batch_size, small);
  });
  return static_cast<int>(replaced.size());
}

void GhostBatchNorm::require(const State& state) const {
  if (!has_effect_ || state.global_batch == 0) return;
  int64_t fewest = state.global_batch / state.topology.data_world;
  if (state.composer)
    for (const int64_t samples : samples_of_ranks(state))
      if (samples > 0) fewest = std::min(fewest, last_microbatch(samples, state));
  if (fewest < ghost_batch_size_)
    fail("a rank gets " + std::to_string(fewest) + " samples in a batch" +
         (state.composer ? " or a microbatch" : "") +
         ", fewer than ghost_batch_size = " + std::to_string(ghost_batch_size_));
}

void GhostBatchNorm::apply(Event, State& state, Logger&) {
  const auto small = state.composer ? SmallBatch::kRefuse : SmallBatch::kNormalise;
  const int replaced = apply_ghost_batchnorm(*state.model, ghost_batch_size_, small);
  has_effect_ = replaced > 0;
  warn_without_effect(state, replaced, name(), "BatchNorm (models/layers/norm.h)");
}

AlgorithmPtr GhostBatchNormOptions::make(const Setting&) const {
  return std::make_shared<GhostBatchNorm>(ghost_batch_size);
}

}  // namespace tutti

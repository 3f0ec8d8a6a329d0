#include "algorithms/augmentation/added_transform.h"

#include "data/readers/transformed_dataset.h"
#include "training/state.h"

namespace tutti {

bool AddedTransform::try_on(const State& state, Batch& sample) const {
  const Transforms added{{name_, transform_}};
  spec_with(*state.dataset, added);
  const int64_t first = 0;
  if (const DatasetPtr with = state.dataset->with(added))
    with->get({&first, 1}, {state.seed});
  else
    transform_->apply(sample, [&](int64_t) { return make_draws(state.seed, {name_}); });
  return false;
}

void AddedTransform::apply(Event, State& state, Logger&) { state.add_transform(name_, transform_); }

AlgorithmPtr AugMixAlgorithm::make(const Setting&) const { return std::make_shared<AugMix>(*this); }

AlgorithmPtr RandAugmentAlgorithm::make(const Setting&) const { return std::make_shared<RandAugment>(*this); }

}  // namespace tutti

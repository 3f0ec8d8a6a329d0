#include "algorithms/augmentation/colout.h"

#include "algorithms/augmentation/fit.h"
#include "data/readers/transformed_dataset.h"
#include "training/state.h"

namespace tutti {

// Zeros in the layout that the transform leads to stand for the transformed images.
bool ColOut::try_on(const State& state, Batch& sample) const {
  const at::Tensor images = options_.input_key.get(sample);
  require_images(images);
  if (options_.batch) {
    drop(sample, *make_draws(state.seed, {.name = "ColOut"}));
  } else {
    Shape shape = spec_with(*state.dataset, {{"ColOut", transform()}}).shapes.at(kInputArray);
    shape.insert(shape.begin(), 1);
    sample.set(kInputArray, images.new_zeros(shape));
  }
  return true;
}

bool ColOut::match(Event event, const State&) const {
  return event == (options_.batch ? Event::kAfterDataloader : Event::kFitStart);
}

void ColOut::apply(Event event, State& state, Logger&) {
  if (event == Event::kFitStart)
    state.add_transform("ColOut", transform());
  else
    drop(state.batch, *state.draws("ColOut"));
}

void ColOut::drop(Batch& batch, Draws& draws) const {
  auto [input, target] =
      colout_batch(options_.input_key.get(batch), options_.target_key.get(batch), draws, options_);
  options_.input_key.set(batch, std::move(input));
  options_.target_key.set(batch, std::move(target));
}

AlgorithmPtr ColOutAlgorithm::make(const Setting& section) const {
  if (!batch && resize_target.value_or(false))
    section.at("resize_target").fail("targets lose rows and columns with batch = true only");
  return std::make_shared<ColOut>(*this);
}

}  // namespace tutti

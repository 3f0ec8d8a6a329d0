#include "algorithms/augmentation/cutout.h"

#include "algorithms/augmentation/fit.h"
#include "training/state.h"

namespace tutti {

bool CutOut::try_on(const State&, Batch& sample) const {
  require_images(input_key_.get(sample));
  return false;
}

bool CutOut::match(Event event, const State&) const { return event == Event::kAfterDataloader; }

void CutOut::apply(Event, State& state, Logger&) {
  input_key_.set(state.batch, cutout_batch(input_key_.get(state.batch), *state.draws("CutOut"), options_));
}

AlgorithmPtr CutOutAlgorithm::make(const Setting&) const {
  return std::make_shared<CutOut>(*this, input_key);
}

}  // namespace tutti

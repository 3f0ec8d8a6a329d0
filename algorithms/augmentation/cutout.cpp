#include "algorithms/augmentation/cutout.h"

#include "algorithms/augmentation/fit.h"
#include "training/state.h"

namespace tutti {

void CutOut::require(const State& state) const {
  require_of_sample(*this, state, [&](Batch& sample) { require_images(input_key_.get(sample)); });
}

bool CutOut::match(Event event, const State&) const { return event == Event::kAfterDataloader; }

void CutOut::apply(Event, State& state, Logger&) {
  input_key_.set(state.batch, cutout_batch(input_key_.get(state.batch), *state.draws("CutOut"), options_));
}

}  // namespace tutti

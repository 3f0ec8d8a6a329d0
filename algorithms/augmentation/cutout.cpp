#include "algorithms/augmentation/cutout.h"

#include "training/state.h"

namespace tutti {

bool CutOut::match(Event event, const State&) const { return event == Event::kAfterDataloader; }

void CutOut::apply(Event, State& state, Logger&) {
  input_key_.set(state.batch, cutout_batch(input_key_.get(state.batch), *state.draws("CutOut"), options_));
}

}  // namespace tutti

#include "algorithms/augmentation/cutout.h"

#include <algorithm>
#include <vector>

#include "training/state.h"

namespace tutti {

at::Tensor cutout_batch(const at::Tensor& input, std::span<const Box> holes) {
  at::Tensor output = input.clone();
  for (const Box& hole : holes) hole.of(output).zero_();
  return output;
}

at::Tensor cutout_batch(const at::Tensor& input, Draws& draws, const CutOutOptions& options) {
  const auto shorter = static_cast<double>(std::min(input.size(-2), input.size(-1)));
  const auto side = static_cast<int64_t>(shorter * options.length);
  std::vector<Box> holes(static_cast<std::size_t>(options.num_holes));
  for (Box& hole : holes) hole = draw_box(input, side, side, options.uniform_sampling, draws);
  return cutout_batch(input, holes);
}

bool CutOut::match(Event event, const State&) const { return event == Event::kAfterDataloader; }

void CutOut::apply(Event, State& state, Logger&) {
  input_key_.set(state.batch, cutout_batch(input_key_.get(state.batch), *state.draws("CutOut"), options_));
}

}  // namespace tutti

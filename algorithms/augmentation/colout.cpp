#include "algorithms/augmentation/colout.h"

#include "algorithms/augmentation/fit.h"
#include "algorithms/augmentation/pixels.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

at::Tensor draw_kept(int64_t size, double dropped, Draws& draws) {
  const auto count = static_cast<int64_t>((1.0 - dropped) * static_cast<double>(size));
  return std::get<0>(draws.permutation(size).narrow(0, 0, count).sort());
}

bool is_resized(const at::Tensor& input, const at::Tensor& target, const ColOutOptions& options) {
  const bool same_size =
      target.dim() > 2 && target.sizes().slice(target.dim() - 2) == input.sizes().slice(input.dim() - 2);
  return options.resize_target.value_or(same_size);
}

}  // namespace

at::Tensor colout_batch(const at::Tensor& input, Draws& draws, const ColOutOptions& options) {
  const at::Tensor rows = draw_kept(input.size(-2), options.p_row, draws);
  return pixels_at(input, rows, draw_kept(input.size(-1), options.p_col, draws));
}

std::pair<at::Tensor, at::Tensor> colout_batch(const at::Tensor& input, const at::Tensor& target,
                                               Draws& draws, const ColOutOptions& options) {
  const at::Tensor rows = draw_kept(input.size(-2), options.p_row, draws);
  const at::Tensor columns = draw_kept(input.size(-1), options.p_col, draws);
  return {pixels_at(input, rows, columns),
          is_resized(input, target, options) ? pixels_at(target, rows, columns) : target};
}

void ColOut::require(const State& state) const {
  require_of_sample(*this, state, [&](Batch& sample) {
    drop(sample, *make_draws(state.seed, {.name = "ColOut"}));
    require_fit(state, sample);
  });
}

bool ColOut::match(Event event, const State&) const { return event == Event::kAfterDataloader; }

void ColOut::apply(Event, State& state, Logger&) { drop(state.batch, *state.draws("ColOut")); }

void ColOut::drop(Batch& batch, Draws& draws) const {
  auto [input, target] = colout_batch(input_key_.get(batch), target_key_.get(batch), draws, options_);
  input_key_.set(batch, std::move(input));
  target_key_.set(batch, std::move(target));
}

}  // namespace tutti

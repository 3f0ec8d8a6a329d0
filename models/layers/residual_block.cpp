#include "models/layers/residual_block.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "runtime/probe/probe.h"
#include "tensors/device.h"

namespace tutti {

TensorTree ResidualBlock::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  const bool whole = drop_ && context().training && !drop_->each_sample;
  if (!whole || context().draws(drop_->name)->bernoulli(1.0 - drop_->rate)) return joined(x);
  TUTTI_PROBE("stochastic depth: a block is left out");
  return skip(x);
}

at::Tensor ResidualBlock::join(at::Tensor main, const at::Tensor& shortcut) { return main + shortcut; }

at::Tensor ResidualBlock::joined(const at::Tensor& x) {
  at::Tensor branch = main(x);
  if (drop_ && !context().training)
    branch = branch * (1.0 - drop_->rate);
  else if (drop_ && drop_->each_sample && drop_->rate > 0)
    branch = branch * kept_samples(branch);
  return join(std::move(branch), shortcut(x));
}

// floor(1 - rate + u), as in Composer and in the implementation of EfficientNet.
at::Tensor ResidualBlock::kept_samples(const at::Tensor& main) const {
  Shape shape(static_cast<std::size_t>(main.dim()), 1);
  shape[0] = main.size(0);
  at::Tensor kept = at::empty(shape, at::kFloat);
  auto* sample = kept.mutable_data_ptr<float>();
  for (int64_t i = 0; i < shape[0]; ++i) {
    const double drawn = context().draws(drop_->name, context().first_sample + i)->uniform(0.0, 1.0);
    sample[i] = std::floor(static_cast<float>(1.0 - drop_->rate) + static_cast<float>(drawn));
  }
  if (std::all_of(sample, sample + shape[0], [](float factor) { return factor == 0.0F; }))
    TUTTI_PROBE("stochastic depth: all samples of a microbatch lose a block");
  return copy_to_device(kept.to(main.scalar_type()), main.device());
}

}  // namespace tutti

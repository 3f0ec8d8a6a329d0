#pragma once

#include <functional>

namespace tutti {

// Additional passes (forward, loss, backward) over the batch of the current step, for optimizers and
// algorithms that need gradients at other weights (SAM). Available after the first pass: State::views has
// its reduced gradients, to be divided by State::grad_scale.
//
// All ranks must make the same number of passes. Before the last pass returns, no lasting state may change:
// if memory runs out or gradients are not finite, `pass` throws an exception that must not be caught, and
// the step is retried or skipped.
class Closure {
 public:
  using Move = std::function<void()>;

  virtual ~Closure() = default;

  // Makes another pass over the batch at the weights that `move` sets. Runs the events from
  // BEFORE_TRAIN_BATCH to AFTER_TRAIN_BATCH, with the same random numbers per microbatch and the weights of
  // `move`. Afterwards the weights are restored bit for bit; gradients and State::grad_scale belong to this
  // pass. Returns the mean loss over all ranks. Memory used by `move` counts for the pass.
  virtual double pass(const Move& move) = 0;

  // Updates the weights with the gradients of the last pass. Call once.
  virtual void step() = 0;
};

}  // namespace tutti

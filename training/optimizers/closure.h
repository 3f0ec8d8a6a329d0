#pragma once

#include <functional>

namespace tutti {

// Forward, loss and backward over the batch of the step under way, for an optimizer or an algorithm that
// wants gradients at other weights too (SAM). It is called once the first pass is done: State::views hold its
// gradients, reduced, which State::grad_scale divides.
//
// All ranks make the same passes: how many is decided by what all know alike. Until the last one has
// returned, nothing that lasts may be changed: where memory runs out in a pass, or its gradients are not
// finite, `pass` ends the whole step by an exception that must be let through, and the step is done again or
// skipped.
class Closure {
 public:
  virtual ~Closure() = default;

  // Another pass over the same batch, at the weights that `move` makes of the present ones. It runs the
  // events from BEFORE_TRAIN_BATCH to AFTER_TRAIN_BATCH; each microbatch draws the same random numbers as
  // before. Then the weights are what they were, bit for bit, and the gradients and State::grad_scale are
  // this pass's. Gives its mean loss over all ranks. Memory that `move` takes counts as the pass's own.
  virtual double pass(const std::function<void()>& move) = 0;

  // The optimizer's update by the gradients of the last pass. Once.
  virtual void step() = 0;
};

}  // namespace tutti

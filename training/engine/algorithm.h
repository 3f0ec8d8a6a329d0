#pragma once

#include "training/engine/event.h"
#include "training/engine/listener.h"
#include "training/engine/logger.h"

namespace tutti {

// What an algorithm asks of those around it. The engine knows none by name.
struct Needs {
  bool first = false;              // before all others, where events are not reversed
  bool last = false;               // after all others
  bool interpolates_loss = false;  // more than one that does is most likely a mistake: a warning
  bool closure = false;  // puts in State::closure_step (SAM): of several that do only one would act, an error
};

// A two-way callback: sees the state and changes it in place. composer.core.Algorithm.
//
// One rule: before the step's verdict (AFTER_DATALOADER to AFTER_BACKWARD, and AFTER_TRAIN_BATCH, where a
// later pass may still fail) it may change the batch, the outputs, the loss and the gradients, and nothing
// that outlasts the step: a step that runs out of memory is done again. At all other events everything may
// change. Memory that runs out there ends the run; it can be resumed from its last checkpoint. An evaluation
// that is cut short still has its ending events (State::evaluation_cut).
class Algorithm : public Listener {
 public:
  virtual Needs needs() const { return {}; }

  // Whether it wants to act. Asked of all algorithms before the first of them acts.
  virtual bool match(Event event, const State& state) const = 0;
  virtual void apply(Event event, State& state, Logger& logger) = 0;
};

}  // namespace tutti

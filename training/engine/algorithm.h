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
// Before the step's verdict (AFTER_DATALOADER to AFTER_BACKWARD) it may change the batch, the outputs and the
// loss, and nothing that lasts: a step that runs out of memory is done again. At AFTER_TRAIN_BATCH it may
// change gradients, and nothing that lasts either: should another rank have no memory for it, the step is
// void. At all events outside of a step's attempt everything may change. There memory is to be taken first:
// where `apply` throws c10::OutOfMemoryError, all must be as before, so that what was trained can be saved.
// After such an event, and AFTER_TRAIN_BATCH, ranks agree by a small sum that all that match could act; so
// all ranks must match alike. An evaluation that is cut short gives its end (EVAL_END, EVAL_AFTER_ALL) to
// those that acted at its beginning, and to nobody else.
class Algorithm : public Listener {
 public:
  virtual Needs needs() const { return {}; }

  // Whether it wants to act. Asked of all algorithms before the first of them acts.
  virtual bool match(Event event, const State& state) const = 0;
  virtual void apply(Event event, State& state, Logger& logger) = 0;
};

}  // namespace tutti

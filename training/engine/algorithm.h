#pragma once

#include <map>
#include <string>
#include <vector>

#include "recipe/setting.h"
#include "tensors/tree.h"
#include "training/engine/event.h"
#include "training/engine/listener.h"
#include "training/engine/logger.h"

namespace tutti {

// Requirements of an algorithm; the engine knows no algorithm by name.
struct Needs {
  bool first = false;                   // run before all other algorithms, except at reversed events
  bool last = false;                    // run after all others
  bool interpolates_loss = false;       // a warning if several algorithms do
  bool closure = false;                 // sets State::closure_step (SAM); an error if several algorithms do
  std::vector<std::string> after = {};  // names of algorithms that act first at the same event
  // Algorithms that cannot be combined with this algorithm, and the reason: an error.
  std::map<std::string, std::string> excludes = {};
  // True if the algorithm changes names, shapes or meaning of weights, so that its checkpoints do not fit the
  // unchanged model. A run that loads a changed checkpoint applies the algorithm, with a warning.
  bool required_on_load = false;
};

// A two-way callback: sees the state and may change the state in place. composer.core.Algorithm.
//
// Before the step's verdict (AFTER_DATALOADER to AFTER_BACKWARD, and AFTER_TRAIN_BATCH if a later pass may
// fail) an algorithm may change only the batch, the outputs, the loss and the gradients, because a step that
// runs out of memory is retried. At all other events the whole state may change; running out of memory there
// ends the run, which can be resumed from its last checkpoint. An evaluation that is cut short still runs the
// events at its end (State::evaluation_cut).
class Algorithm : public Listener {
 public:
  // The section of the recipe that names the algorithm: errors then begin with its file and line.
  void set_section(const Setting& section) { section_ = section; }
  [[noreturn]] void fail(const std::string& message) const;  // throws UserError

  virtual Needs needs() const { return {}; }

  // Shrinks a one-sample batch as far as the algorithm ever does, after the earlier algorithms. True if the
  // model must be tried on the result. Throws UserError if the samples do not fit. Called by Engine::require.
  virtual bool try_on(const State&, Batch& /*sample*/) const { return false; }
  // INIT for surgery, FIT_START for transforms of the data, else AFTER_DATALOADER: the order of try_on.
  virtual Event tried_at() const { return Event::kAfterDataloader; }

  // The most forward passes, without gradients, before the microbatches of the next step; the same on all
  // ranks. Sharded parameters are gathered for that many passes.
  virtual int64_t forwards(const State&) const { return 0; }

  // False if `apply` leaves all parameters as they are, but for INIT. Else frozen parameters are looked
  // through after each act that may have changed the state.
  virtual bool writes_parameters() const { return true; }

  // True if the algorithm acts at the event. All algorithms are asked before any acts.
  virtual bool match(Event event, const State& state) const = 0;
  virtual void apply(Event event, State& state, Logger& logger) = 0;

 private:
  Setting section_;
};

}  // namespace tutti

#pragma once

#include <string>

#include "training/engine/event.h"
#include "training/engine/listener.h"
#include "training/engine/logger.h"

namespace tutti {

// Watches a run, and changes nothing that is trained: composer.core.Callback. Its own state changes when a
// step is over (BATCH_END and later), since until then it may be done again.
class Callback : public Listener {
 public:
  // Throws UserError where the run, whose model is built, has not what this needs; `tutti check` asks too.
  virtual void require(const State&) const {}

  // Called at every event; calls the function of the event.
  virtual void run_event(Event event, State& state, Logger& logger);

  virtual void init(State&, Logger&) {}
  virtual void before_load(State&, Logger&) {}
  virtual void after_load(State&, Logger&) {}
  virtual void fit_start(State&, Logger&) {}
  virtual void iteration_start(State&, Logger&) {}
  virtual void epoch_start(State&, Logger&) {}
  virtual void before_dataloader(State&, Logger&) {}
  virtual void after_dataloader(State&, Logger&) {}
  virtual void batch_start(State&, Logger&) {}
  virtual void before_train_batch(State&, Logger&) {}
  virtual void before_forward(State&, Logger&) {}
  virtual void after_forward(State&, Logger&) {}
  virtual void before_loss(State&, Logger&) {}
  virtual void after_loss(State&, Logger&) {}
  virtual void before_backward(State&, Logger&) {}
  virtual void after_backward(State&, Logger&) {}
  virtual void after_train_batch(State&, Logger&) {}
  virtual void batch_end(State&, Logger&) {}
  virtual void batch_checkpoint(State&, Logger&) {}
  virtual void epoch_end(State&, Logger&) {}
  virtual void epoch_checkpoint(State&, Logger&) {}
  virtual void iteration_end(State&, Logger&) {}
  virtual void iteration_checkpoint(State&, Logger&) {}
  virtual void fit_end(State&, Logger&) {}
  virtual void eval_before_all(State&, Logger&) {}
  virtual void eval_start(State&, Logger&) {}
  virtual void eval_batch_start(State&, Logger&) {}
  virtual void eval_before_forward(State&, Logger&) {}
  virtual void eval_after_forward(State&, Logger&) {}
  virtual void eval_batch_end(State&, Logger&) {}
  virtual void eval_end(State&, Logger&) {}
  virtual void eval_after_all(State&, Logger&) {}
  virtual void eval_standalone_start(State&, Logger&) {}
  virtual void eval_standalone_end(State&, Logger&) {}
  virtual void predict_start(State&, Logger&) {}
  virtual void predict_batch_start(State&, Logger&) {}
  virtual void predict_before_forward(State&, Logger&) {}
  virtual void predict_after_forward(State&, Logger&) {}
  virtual void predict_batch_end(State&, Logger&) {}
  virtual void predict_end(State&, Logger&) {}

  // An attempt at a step ran out of memory on some rank and is aborted on all; it is done again in smaller
  // parts, or the run ends. `account` tells who asked for how much, and what held memory. On every rank.
  virtual void out_of_memory(State&, Logger&, const std::string& account) { static_cast<void>(account); }

  // The run is over, well or badly: files are closed. Called once, also where an event threw.
  virtual void close(State&, Logger&) {}
};

}  // namespace tutti

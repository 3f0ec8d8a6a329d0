#pragma once

#include <bitset>
#include <cstddef>
#include <string>

#include "training/engine/event.h"
#include "training/engine/listener.h"
#include "training/engine/logger.h"

namespace tutti {

// Watches a run without changing the training: composer.core.Callback. The callback's own state changes only
// after the verdict (BATCH_END and later), because until then the step may be retried.
class Callback : public Listener {
 public:
  // Called at every event; calls the function of the event. A subclass that overrides this function for other
  // events overrides `acts` too.
  virtual void run_event(Event event, State& state, Logger& logger);

  // False if the callback has had the event, and has no function for the event: nobody needs to wait for the
  // event's data. An override of a function below must not call the function of Callback.
  virtual bool acts(Event event) const { return !ignored_[static_cast<std::size_t>(event)]; }

  virtual void init(State&, Logger&) { acts_ = false; }
  virtual void before_load(State&, Logger&) { acts_ = false; }
  virtual void after_load(State&, Logger&) { acts_ = false; }
  virtual void fit_start(State&, Logger&) { acts_ = false; }
  virtual void iteration_start(State&, Logger&) { acts_ = false; }
  virtual void epoch_start(State&, Logger&) { acts_ = false; }
  virtual void before_dataloader(State&, Logger&) { acts_ = false; }
  virtual void after_dataloader(State&, Logger&) { acts_ = false; }
  virtual void batch_start(State&, Logger&) { acts_ = false; }
  virtual void before_train_batch(State&, Logger&) { acts_ = false; }
  virtual void before_forward(State&, Logger&) { acts_ = false; }
  virtual void after_forward(State&, Logger&) { acts_ = false; }
  virtual void before_loss(State&, Logger&) { acts_ = false; }
  virtual void after_loss(State&, Logger&) { acts_ = false; }
  virtual void before_backward(State&, Logger&) { acts_ = false; }
  virtual void after_backward(State&, Logger&) { acts_ = false; }
  virtual void after_train_batch(State&, Logger&) { acts_ = false; }
  virtual void batch_end(State&, Logger&) { acts_ = false; }
  virtual void batch_checkpoint(State&, Logger&) { acts_ = false; }
  virtual void epoch_end(State&, Logger&) { acts_ = false; }
  virtual void epoch_checkpoint(State&, Logger&) { acts_ = false; }
  virtual void iteration_end(State&, Logger&) { acts_ = false; }
  virtual void iteration_checkpoint(State&, Logger&) { acts_ = false; }
  virtual void fit_end(State&, Logger&) { acts_ = false; }
  virtual void eval_before_all(State&, Logger&) { acts_ = false; }
  virtual void eval_start(State&, Logger&) { acts_ = false; }
  virtual void eval_batch_start(State&, Logger&) { acts_ = false; }
  virtual void eval_before_forward(State&, Logger&) { acts_ = false; }
  virtual void eval_after_forward(State&, Logger&) { acts_ = false; }
  virtual void eval_batch_end(State&, Logger&) { acts_ = false; }
  virtual void eval_end(State&, Logger&) { acts_ = false; }
  virtual void eval_after_all(State&, Logger&) { acts_ = false; }
  virtual void eval_standalone_start(State&, Logger&) { acts_ = false; }
  virtual void eval_standalone_end(State&, Logger&) { acts_ = false; }
  virtual void predict_start(State&, Logger&) { acts_ = false; }
  virtual void predict_batch_start(State&, Logger&) { acts_ = false; }
  virtual void predict_before_forward(State&, Logger&) { acts_ = false; }
  virtual void predict_after_forward(State&, Logger&) { acts_ = false; }
  virtual void predict_batch_end(State&, Logger&) { acts_ = false; }
  virtual void predict_end(State&, Logger&) { acts_ = false; }

  // Called on every rank when an attempt at a step ran out of memory on some rank and is aborted. The step is
  // retried with smaller microbatches, or the run ends. `account` says who asked for how many bytes and how
  // memory was used.
  virtual void out_of_memory(State&, Logger&, const std::string& account) { static_cast<void>(account); }

  // Closes files: the run is over, successfully or not. Called once, also after an event threw.
  virtual void close(State&, Logger&) {}

 private:
  bool acts_ = true;  // at the current event
  std::bitset<kEvents> ignored_;
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "actors/compute/compute_services.h"
#include "actors/compute/evaluations.h"
#include "actors/compute/loop_state.h"
#include "actors/compute/snapshots.h"
#include "actors/compute/timetable.h"
#include "actors/compute/train_step.h"
#include "actors/logging/run_log.h"
#include "io/checkpoint/run_state.h"
#include "job/job.h"
#include "runtime/actor/actor.h"
#include "tensors/memory/out_of_memory.h"
#include "training/engine/engine.h"
#include "training/state.h"

namespace tutti {

// Trains on one rank, from FIT_START to the end of the run: the loop drawn in training/engine/event.h. Runs
// on Compute's thread, and receives Compute's messages while waiting for batches.
class TrainingLoop {
 public:
  // All must outlive the loop.
  struct Parts : TrainStep::Parts {
    ComputeServices& services;
    RunLog& run_log;
    TrainStep& train_step;
    Evaluations& evaluations;
  };

  explicit TrainingLoop(const Parts& parts);

  // Before `run`: to resume a saved run (LoopState::restore).
  LoopState& state() { return loop_state_; }
  // Before `run`: a request to stop.
  void request_stop() { with_.train_step.request_stop(); }

  // Trains until max_duration and all tasks are done, or the run is asked to stop, or a sample is too large
  // for the memory. Ends with the last snapshot and TrainingDone to the Supervisor.
  void run(Context& context);

  // "step 57, Compute: ", for errors in mid-run.
  std::string place() const;

  // Runs an event outside an attempt, where running out of memory ends the run.
  void run_event(Context& context, Event event);

 private:
  using Labels = Evaluations::Labels;

  void begin(Context& context);
  void start_fit(Context& context);
  bool train(Context& context);
  bool fit(Context& context);
  bool end_fit(Context& context);
  void begin_batch(Context& context);
  void train_batch(Context& context);
  BatchReady next_batch(Context& context);
  void end_epoch(Context& context);
  bool end_step(Context& context);
  bool evaluate_due(Context& context);
  void evaluate_before_stop(Context& context);
  std::optional<LoggedMetrics> evaluate(Context& context, const Labels& labels, bool standalone = false);
  void watch_best(const LoggedMetrics& metrics);
  void train_on(Context& context);
  void finish(Context& context, bool stopped);
  void give_up(Context& context, const AgreedOutOfMemory& why);
  TrainingEnded ended(bool stopped) const;
  void record(Context& context, TraceKind kind);

  Parts with_;
  TensorsDigest batch_digest_;
  LoopState loop_state_;
  int64_t first_step_ = 0;       // steps done before this process
  TimePoint step_began_;         // the end of the last step, so that waiting for a batch counts
  bool reads_ahead_ = false;     // the Loader has credits
  int64_t step_ = 0;             // the current step, from 1
  bool stop_agreed_ = false;     // by the verdict
  bool checkpoint_due_ = false;  // after the current step
};

}  // namespace tutti

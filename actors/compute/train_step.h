#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/compute/accumulation.h"
#include "actors/compute/exchange.h"
#include "actors/compute/microbatches.h"
#include "actors/compute/snapshots.h"
#include "actors/compute/timetable.h"
#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "job/job.h"
#include "runtime/actor/actor.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/recorder.h"
#include "tensors/memory/out_of_memory.h"
#include "training/engine/engine.h"
#include "training/loggers/step_log.h"
#include "training/precision.h"
#include "training/state.h"

namespace tutti {

// A training step of this rank: forward and backward over the microbatches, while Sync reduces full buckets;
// the verdict of all ranks; more such passes if a closure asks for them; last the optimizer's update. If any
// rank runs out of memory in any pass, all ranks abort the attempt and retry the step in smaller parts.
class TrainStep {
 public:
  // All must outlive the step.
  struct Parts {
    const Job& job;
    const RankActors& actors;
    Log& log;
    Recorder& recorder;
    State& state;
    Engine& engine;
    StepLog& step_log;
    Snapshots& snapshots;
    Timetable& times;
  };

  explicit TrainStep(const Parts& parts);
  const Parts& parts() const { return with_; }
  ~TrainStep();

  Accumulation& accumulation() { return accumulation_; }
  const Accumulation& accumulation() const { return accumulation_; }

  // The state of loss scaling; zeros if losses are not scaled.
  GradScalerState grad_scaler() const;
  void restore_grad_scaler(const GradScalerState& state);

  // Collective: allocates buckets. Called after all ranks have agreed to start.
  void set_up(Context& context);

  int64_t skipped() const { return skipped_; }                    // steps, by this process
  int64_t skipped_in_a_row() const { return skipped_in_a_row_; }  // up to the last step

  // The bytes of copies for checkpoints, for reports of out of memory.
  void count_copies(int64_t bytes) { copies_bytes_ = bytes; }

  // Trains on the batch with learning rate `lr`. Returns the verdict of all ranks. Throws AgreedOutOfMemory,
  // with no lasting state changed, if memory runs out and the parts cannot be smaller.
  Verdict run(const BatchReady& ready, double lr);
  // The verdict of the next pass says so.
  void request_stop() { stop_requested_ = true; }

  // From set_up on.
  Exchange& exchange() { return *exchange_; }

  // After the state's time includes the step: may try fewer microbatches in the next step.
  void grow_back();

 private:
  struct StepAborted;
  class Passes;
  class StepBefore;
  class KeptWeights;

  // The passes of a step, summed over ranks.
  struct Sum {
    int passes = 0;
    Verdict verdict;
    std::vector<at::Tensor> statistics;  // of each pass
  };

  bool attempt(const BatchReady& ready, double lr);
  bool pass(const Closure::Move& move = {});
  bool launch_check();
  bool agree();
  bool updates_unseen() const;
  void update_unseen();
  void vote(Verdict& mine) const;
  double extra_pass(const Closure::Move& move);
  void add_up(PassResult all);
  void take_gradients();
  void set_grad_scale(double loss_weight);
  void take_results();
  bool commit();
  void skip();

  void require_alike(int64_t global_samples) const;
  void shrink_microbatches(const BatchReady& ready);
  OutOfMemoryReport memory_report(const MicrobatchResult& mine, const Batch& batch) const;
  void use_accumulation();
  void use_graphs();
  void plan();
  void scale_losses(const Batch& batch);
  void update_scale(bool overflowed);
  std::string step_text() const;  // "step 7: "
  void record(TraceKind kind, int64_t detail = 0);

  Parts with_;
  State& state_;
  Log& log_;
  Recorder& recorder_;
  Context* context_ = nullptr;  // from set_up on

  Accumulation accumulation_;
  std::optional<GradScaler> scaler_;  // none: losses are not scaled
  std::optional<Exchange> exchange_;
  std::vector<Slot::Hook> checkpointed_;  // of layers whose activations backward computes again
  std::optional<Microbatches> microbatches_;
  MicrobatchResult* mine_ = nullptr;  // of the last pass
  PassFacts facts_;                   // of the last pass, on a device
  at::Tensor found_inf_;              // of the last pass, on a device: see Exchange::check
  bool device_skips_ = false;         // found_inf_, once the host knows it
  bool unseen_ = false;               // the update is launched before the host knows the verdict
  Verdict last_;                      // of all ranks on the last pass
  Sum sum_;                           // of the step
  at::Tensor grad_scale_;             // allocated beforehand, so that the update needs no allocation
  std::vector<at::Tensor> kept_;      // copies of the weights during extra passes; empty before
  int64_t skipped_ = 0, skipped_in_a_row_ = 0;
  int64_t copies_bytes_ = 0;
  bool stop_requested_ = false;
  int64_t surgeries_ = 0;  // State::surgeries when the buckets were allocated
};

}  // namespace tutti

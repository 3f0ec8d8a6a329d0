#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/compute/accumulation.h"
#include "actors/compute/exchange.h"
#include "actors/compute/microbatches.h"
#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "job/job.h"
#include "runtime/actor/actor.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/recorder.h"
#include "tensors/out_of_memory.h"
#include "training/engine/engine.h"
#include "training/precision.h"
#include "training/state.h"

namespace tutti {

// A training step of this rank: forward and backward over the microbatches, while Sync reduces full buckets;
// the verdict of all ranks; more such passes if a closure asks for them; last the optimizer's update. If any
// rank runs out of memory in any pass, all ranks abort the attempt and retry the step in smaller parts.
class TrainStep {
 public:
  // Callbacks into the rest of the rank.
  struct Hooks {
    std::function<void(Verdict& mine)> vote;  // adds time and a request to stop
    std::function<void()> abort_attempt;      // drops the log of the attempt
    std::function<void()> before_update;      // before any lasting change
    std::function<void(Event)> run_event;     // AFTER_TRAIN_BATCH
  };

  TrainStep(State& state, Engine& engine, const Job& job, const RankActors& actors, Log& log,
            Recorder& recorder);
  ~TrainStep();

  Accumulation& accumulation() { return accumulation_; }
  const Accumulation& accumulation() const { return accumulation_; }

  // The state of loss scaling; zeros if losses are not scaled.
  GradScalerState grad_scaler() const;
  void restore_grad_scaler(const GradScalerState& state);

  // Collective: allocates buckets. Called after all ranks have agreed to start.
  void set_up(Context& context, const RunSettings& settings);

  int64_t skipped() const { return skipped_; }  // steps, by this process

  // The bytes of copies for checkpoints, for reports of out of memory.
  void count_copies(int64_t bytes) { copies_bytes_ = bytes; }

  // Trains on the batch with learning rate `lr`. Returns the verdict of all ranks. Throws AgreedOutOfMemory,
  // with no lasting state changed, if memory runs out and the parts cannot be smaller.
  Verdict run(Context& context, const BatchReady& ready, double lr, const Hooks& hooks);

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

  bool try_step(Context& context, const BatchReady& ready, double lr, const Hooks& hooks);
  bool pass(Context& context, const Hooks& hooks, const std::function<MicrobatchResult()>& work);
  double extra_pass(Context& context, const Hooks& hooks, const std::function<void()>& move);
  void add_up(PassResult all);
  void take_gradients(Context& context, const Hooks& hooks);
  bool commit(Context& context, const Hooks& hooks);
  void skip(Context& context);

  void shrink_microbatches(Context& context, const BatchReady& ready);
  OutOfMemoryReport memory_report(const MicrobatchResult& mine, const Batch& batch) const;
  void use_accumulation(Context& context);
  void plan(Context& context);
  void scale_losses(Context& context, const Batch& batch);
  void update_scale(bool overflowed);
  Verdict verdict_of(const MicrobatchResult& result) const;
  std::string step_text() const;  // "step 7: "
  void record(Context& context, TraceKind kind, int64_t detail = 0);

  State& state_;
  Engine& engine_;
  const RankActors& actors_;
  Log& log_;
  Recorder& recorder_;

  Accumulation accumulation_;
  std::optional<GradScaler> scaler_;  // none: losses are not scaled
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<Microbatches> microbatches_;
  MicrobatchResult mine_;         // of the last pass
  Verdict last_;                  // of all ranks on the last pass
  Sum sum_;                       // of the step
  at::Tensor grad_scale_;         // allocated beforehand, so that the update allocates nothing
  std::vector<at::Tensor> kept_;  // copies of the weights during extra passes; empty before the first one
  int64_t skipped_ = 0;
  int64_t copies_bytes_ = 0;
  int64_t surgeries_ = 0;  // State::surgeries when the buckets were allocated
};

}  // namespace tutti

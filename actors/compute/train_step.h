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
#include "recipe/setting.h"
#include "runtime/actor/actor.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/recorder.h"
#include "tensors/out_of_memory.h"
#include "training/engine/engine.h"
#include "training/precision.h"
#include "training/state.h"

namespace tutti {

// One step of training on this rank: forward and backward over the microbatches, while Sync reduces what is
// ready; the verdict of all ranks; more such passes, where a closure asks for them; then, and only then, the
// optimizer's step. One in which some rank runs out of memory, in any pass, is aborted on all, and done again
// in smaller parts.
class TrainStep {
 public:
  struct Options {
    int64_t device_batch = 0;   // samples of a whole batch on a rank, of the most
    Setting recipe;             // resolved
    int memory_slot = 0;        // of the meter
    int64_t memory_budget = 0;  // bytes; 0 = none
  };

  // What the log is told, after a number, of memory that an aborted attempt does not give back.
  static constexpr const char* kStillHeld = " bytes of the void attempt are still held";

  // What the rest of the rank has to do with a step.
  struct Hooks {
    std::function<void(Verdict& mine)> vote;  // puts in what the step itself does not know
    std::function<void()> abort_attempt;      // all that was said of the step is said again
    std::function<void()> before_update;      // the last moment before anything that lasts changes
    std::function<void(Event)> run_event;     // AFTER_TRAIN_BATCH
  };

  TrainStep(State& state, Engine& engine, Options options, const RankActors& actors, Log& log,
            Recorder& recorder);
  ~TrainStep();

  Accumulation& accumulation() { return accumulation_; }
  const Accumulation& accumulation() const { return accumulation_; }

  // How losses are scaled; 0 where they are not.
  GradScalerState grad_scaler() const;
  void restore_grad_scaler(const GradScalerState& state);

  // Once every rank has said that it can train: allocating buckets is collective.
  void set_up(Context& context);

  // What the copies for checkpoints hold, for the account of a shortage.
  void count_copies(int64_t bytes) { copies_bytes_ = bytes; }

  // Trains on the batch at rate `lr`; gives the verdict of all ranks. Throws AgreedOutOfMemory, before
  // anything has changed that lasts, where memory runs out and nothing can be made smaller.
  Verdict run(Context& context, const BatchReady& ready, double lr, const Hooks& hooks);

  // After the step has been counted: whether the next one may try fewer microbatches.
  void grow_back();

 private:
  struct GivenUp;
  class Passes;
  class StepBefore;
  class WeightsKept;

  // What the passes of a step came to, over all ranks.
  struct Sum {
    int passes = 0;
    Verdict verdict;
    std::vector<at::Tensor> statistics;  // of each pass
  };

  bool try_step(Context& context, const BatchReady& ready, double lr, const Hooks& hooks);
  bool pass(Context& context, const Hooks& hooks, const std::function<MicrobatchResult()>& work);
  double extra_pass(Context& context, const Hooks& hooks, const std::function<void()>& move);
  void add_up(StepFinished all);
  void take_gradients(Context& context, const Hooks& hooks);
  bool commit(Context& context, const Hooks& hooks);
  void skip(Context& context);

  void make_room(Context& context, const BatchReady& ready);
  OutOfMemoryReport shortage(const MicrobatchResult& mine, const Batch& batch) const;
  void use_accumulation(Context& context);
  void scale_losses(Context& context, const Batch& batch);
  void update_scale(bool overflowed);
  Verdict verdict_of(const MicrobatchResult& result) const;
  std::string step_text() const;  // "step 7: "
  void record(Context& context, const char* what, int64_t detail = 0);

  State& state_;
  Engine& engine_;
  Options options_;
  const RankActors& actors_;
  Log& log_;
  Recorder& recorder_;

  Accumulation accumulation_;
  std::optional<GradScaler> scaler_;  // where losses are scaled
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<Microbatches> microbatches_;
  MicrobatchResult mine_;         // of the last pass
  Verdict last_;                  // on it, of all ranks
  Sum sum_;                       // of the step
  at::Tensor grad_scale_;         // for the update, which so takes no memory
  std::vector<at::Tensor> kept_;  // for the weights while they are elsewhere; empty until they first are
  int64_t copies_bytes_ = 0;
};

}  // namespace tutti

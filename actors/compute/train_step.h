#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/compute/exchange.h"
#include "actors/compute/passes.h"
#include "actors/compute/snapshots.h"
#include "actors/compute/step_memory.h"
#include "actors/compute/timetable.h"
#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "job/job.h"
#include "runtime/actor/actor.h"
#include "runtime/log.h"
#include "runtime/recorder.h"
#include "training/engine/engine.h"
#include "training/loggers/step_log.h"
#include "training/loss_scale.h"
#include "training/state.h"

namespace tutti {

// A training step of this rank: forward and backward over the portions, while Sync reduces full buckets; the
// facts of all ranks; more such passes if a closure asks for them; last the optimizer's update. If any rank
// runs out of memory in any pass, all ranks abort the attempt and retry the step in smaller portions.
// docs/step.md follows a step through the sources.
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

  // Collective: allocates buckets. Called after all ranks have agreed to start.
  void set_up(Context& context);

  // Trains on the batch with learning rate `lr`. Returns the verdict of all ranks. Throws AgreedOutOfMemory,
  // with no lasting state changed, if memory runs out and the portions cannot be smaller.
  Verdict run(const BatchReady& ready, double lr);
  // The verdict of the next pass says so.
  void request_stop() { stop_requested_ = true; }

  // Steps that were skipped by this process, in all and up to the last step.
  struct Skips {
    int64_t total = 0, in_a_row = 0;
  };
  const Skips& skips() const { return skips_; }

  StepMemory& memory() { return memory_; }
  LossScale& loss_scale() { return loss_scale_; }
  Exchange& exchange() { return *exchange_; }  // from set_up on

 private:
  struct StepAborted;
  class StepClosure;
  class StepBefore;
  class KeptWeights;

  // The passes of a step, summed over ranks.
  struct Sum {
    int passes = 0;
    Verdict verdict;
    Verdict last;                        // of the last pass
    std::vector<at::Tensor> statistics;  // of each pass
    bool launched_update = false;        // before the host knew the numbers
  };

  void begin(const BatchReady& ready);
  void use_plan();
  void require_alike(int64_t global_samples) const;
  bool attempt(const BatchReady& ready, double lr);
  bool pass(const Closure::Move& move = {});
  double extra_pass(const Closure::Move& move);
  void complete_pass();
  void take_results();
  void add_up(PassResult all);
  bool updates_first() const;
  bool commit();
  void update(const at::Tensor& skip);
  void skip();
  void record(TraceKind kind, int64_t detail = 0);

  Parts with_;
  State& state_;
  Context* context_ = nullptr;  // from set_up on
  StepMemory memory_;
  LossScale loss_scale_;
  std::optional<Exchange> exchange_;
  std::vector<Slot::Hook> checkpointed_;  // of layers whose activations backward computes again
  std::optional<Passes> passes_;
  Pass* pass_ = nullptr;          // the last
  PassFacts facts_;               // of the last pass
  Sum sum_;                       // of the step
  at::Tensor grad_scale_;         // allocated beforehand, so that the update needs no allocation
  std::vector<at::Tensor> kept_;  // copies of the weights during extra passes; empty before
  Skips skips_;
  bool stop_requested_ = false;
  int64_t surgeries_ = 0;  // State::surgeries when the buckets were allocated
};

}  // namespace tutti

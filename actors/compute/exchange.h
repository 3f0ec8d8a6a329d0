#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/compute/gradient_sync.h"
#include "actors/compute/sync_client.h"
#include "actors/compute/unsharding.h"
#include "actors/messages/verdict.h"
#include "sharding/catalog.h"
#include "tensors/late_numbers.h"
#include "training/state.h"

namespace tutti {

struct PassResult {
  Verdict verdict;        // of all ranks
  at::Tensor statistics;  // [world, numbers]; undefined without statistics
};

// The facts that all ranks need before launching an update on a device: sums over ranks of fields of Verdict.
struct PassFacts {
  double out_of_memory = 0, loss_weight = 0, unused = 0;
};

// Facts that fix the collectives of a pass; the same on all ranks.
struct PassShape {
  int64_t forwards = 0;  // of the model before the microbatches, without gradients
  int64_t microbatches = 1;
  int64_t statistics = 0;  // float32 numbers of each rank, all-gathered
  int64_t sums = 0;        // numbers of the verdict's sums
  friend bool operator==(const PassShape&, const PassShape&) = default;
};

struct ExchangeOptions {
  int64_t bucket_bytes = 0;
  ShardingSettings sharding;
};

// The exchanges of ranks in a pass (forward, backward, verdict): parameters, gradients, statistics, the
// verdict. Called in this order: begin_pass, unshard, for each microbatch begin_microbatch and
// end_microbatch, end_pass, agree; after an exception abandon_pass, then agree. On a device `facts` comes
// before `agree`, and if no rank has run out of memory take_gradients and check between the two calls.
class Exchange {
 public:
  // For one rank. `scaled`: losses are scaled.
  Exchange(State& state, bool scaled);
  // For several ranks. Collective. The state must outlive the exchange.
  Exchange(State& state, const ExchangeOptions& options, std::unique_ptr<SyncClient> sync);

  // Called before each step. Sets the collectives of later passes, if changed: gradients of newly frozen
  // parameters are not reduced.
  void plan(const PassShape& shape);

  void begin_pass() { gradients_->begin_pass(); }
  // Call when this rank's share of the parameters has its values for the pass.
  void unshard();
  // Ends the forwards before the microbatches (PassShape::forwards). Call before ranks wait for each other.
  // Also after an exception, even an exception before `unshard`.
  void end_forwards();
  // `last`: of the pass.
  void begin_microbatch(int64_t microbatch, bool last);
  void end_microbatch();
  void end_pass() { gradients_->end_pass(); }
  void abandon_pass();

  // Of all ranks, which meet on the host; of this rank alone after running out of memory. Else gradients are
  // reduced for later work of this thread's stream.
  PassFacts facts(const Verdict& mine);
  // A float32 scalar on the device: 1 if a loss or a gradient of any rank is not finite, else 0. The host
  // does not wait. `overflow` is called by numbers.read() if gradients of this rank are not finite.
  // Overwrites `losses`.
  at::Tensor check(const std::vector<at::Tensor>& losses, LateNumbers& numbers,
                   std::function<void()> overflow);

  // Call once for each pass: `mine` and `statistics` of this rank.
  PassResult agree(Verdict mine, const at::Tensor& statistics);
  // After the verdict, or after `facts`: sets the gradient of every view to the sum over ranks; undefined if
  // no rank has a gradient. `unused`: of all ranks.
  void take_gradients(double unused);
  const GradientSync& gradients() const { return *gradients_; }

  // The sum over ranks of `values`, in their memory: over all ranks, or, outside of a pass, over the ranks
  // that share parameters (kReductions).
  at::Tensor sum(const at::Tensor& values, GroupRole group = GroupRole::kWorld) {
    return sync_ ? sync_->sum(values, group) : values;
  }

  // Between passes of training: allows running the model until `reshard_model`. Collective if parameters are
  // sharded; ranks with `wanted` false only serve. `forwards`: the most forward passes on a rank without
  // memory for the whole model.
  void unshard_model(bool computes, int64_t forwards);
  void reshard_model();
  // Between the two: serves the forwards that are left, before ranks wait for each other.
  void end_held_forwards();
  // As State::visit_parameters, of sharded parameters; without `visit` this rank only serves.
  void visit_parameters(const RankServices::Visit& visit);

  // True if no rank has memory for the whole model: ranks evaluate each batch together, with equally many
  // forwards on each rank.
  bool evaluates_together() const { return unsharding_ && unsharding_->reshards(); }

 private:
  void set_training_plan();
  void plan_check(std::vector<PlanEntry>& entries);

  State& state_;
  const bool replicas_ = false;
  std::unique_ptr<SyncClient> sync_;        // null: one rank
  std::unique_ptr<Unsharding> unsharding_;  // none: every rank has all parameters
  std::unique_ptr<GradientSync> gradients_;
  std::vector<bool> trained_;  // for each parameter, true if a gradient was required at the last plan
  std::optional<PassShape> shape_;
  bool has_other_plan_ = false;  // Sync's plan is not that of training
  at::Tensor verdict_, statistics_, gathered_;
  at::Tensor facts_, flag_;         // with a device; flag_ is there
  int facts_at_ = 0, flag_at_ = 0;  // in the plan
};

}  // namespace tutti

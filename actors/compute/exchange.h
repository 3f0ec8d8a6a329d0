#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "actors/compute/gradient_sync.h"
#include "actors/compute/pass.h"
#include "actors/compute/sync_client.h"
#include "actors/compute/unsharding.h"
#include "actors/messages/verdict.h"
#include "data/portions.h"
#include "sharding/catalog.h"
#include "training/state.h"

namespace tutti {

// What all ranks know of a pass before the update; on a device a rank that lacks memory knows its own facts
// alone. On a host the facts are the verdict's; on a device the host does not wait for `skip`.
struct PassFacts {
  double out_of_memory = 0;  // ranks; the attempt is aborted
  double loss_weight = 0;    // 0: nothing counts
  // A float32 scalar on the device: 1 if a loss or a gradient of any rank is not finite, else 0. Undefined on
  // a host.
  at::Tensor skip;
};

// Of all ranks.
struct PassResult {
  Verdict verdict;
  at::Tensor statistics;  // [world, numbers]; undefined without statistics
};

// Facts that fix the collectives of a pass; the same on all ranks.
struct PassShape {
  int64_t forwards = 0;  // of the model before the portions, without gradients
  int64_t portions = 1;
  int64_t statistics = 0;  // float32 numbers of each rank, all-gathered
  int64_t sums = 0;        // numbers of the verdict's sums
  friend bool operator==(const PassShape&, const PassShape&) = default;
};

struct ExchangeOptions {
  int64_t bucket_bytes = 0;
  ShardingSettings sharding;
};

// The order of calls in a pass: begin_pass, unshard, begin_portion and end_portion for each portion,
// end_pass, facts, verdict. After an exception, wherever thrown, abandon_pass comes in place of end_pass.
class PassOrder {
 public:
  enum class Stage { kIdle, kPass, kPortion, kOver, kFacts };
  using enum Stage;

  // Asserts that the pass is in one of the stages `from`.
  void enter(std::initializer_list<Stage> from, Stage to);

 private:
  Stage stage_ = kIdle;
};

// The exchanges of ranks in a pass (forward, backward, verdict): parameters, gradients, statistics, the
// verdict. Asserts the order of its calls.
class Exchange {
 public:
  // For one rank. `scaled`: losses are scaled.
  Exchange(State& state, bool scaled);
  // For several ranks. Collective. The state must outlive the exchange.
  Exchange(State& state, const ExchangeOptions& options, std::unique_ptr<SyncClient> sync);

  // Called before each step. Sets the collectives of later passes, if changed: gradients of newly frozen
  // parameters are not reduced.
  void plan(const PassShape& shape);

  void begin_pass();
  // Call when this rank's share of the parameters has its values for the pass.
  void unshard();
  // Ends the forwards before the portions (PassShape::forwards). Call before ranks wait for each other.
  // Also after an exception, even an exception before `unshard`.
  void end_forwards();
  void begin_portion(const Portion& portion);
  void end_portion();
  void end_pass();
  void abandon_pass();  // after an exception, in place of end_pass

  // Where ranks meet on the host. If no rank has run out of memory, sets the gradient of every view to the
  // sum over ranks: undefined if no rank has a gradient. On a host `mine` is complete, since the verdict is
  // summed here; on a device its numbers may come later, and `losses` are overwritten.
  PassFacts facts(Pass& mine);
  // Ends the pass, after running what other ranks still need of this rank: on a device sums the verdict, for
  // which `mine` is complete; on a host returns what `facts` has summed.
  PassResult verdict(Pass& mine);
  const GradientSync& gradients() const { return *gradients_; }
  // Of whole parameters that are in memory now, beside this rank's share.
  double gathered_bytes() const { return unsharding_ ? unsharding_->gathered_bytes() : 0; }

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
  // What ranks sum and gather at the end of a pass.
  struct Numbers {
    at::Tensor verdict, statistics, gathered;
    at::Tensor facts, flag;         // with a device; `flag` is there
    int facts_at = 0, flag_at = 0;  // in the plan
  };

  void set_training_plan();
  void plan_check(std::vector<PlanEntry>& entries);
  PassResult agree(Pass& mine);
  PassFacts device_facts(Pass& mine);
  void take_gradients(double unused);

  State& state_;
  const bool replicas_ = false;
  std::unique_ptr<SyncClient> sync_;        // null: one rank
  std::unique_ptr<Unsharding> unsharding_;  // none: every rank has all parameters
  std::unique_ptr<GradientSync> gradients_;
  std::vector<bool> trained_;  // for each parameter, true if a gradient was required at the last plan
  std::optional<PassShape> shape_;
  bool has_other_plan_ = false;  // Sync's plan is not that of training
  Numbers numbers_;
  PassOrder order_;
  std::optional<PassResult> result_;  // on a host, between facts() and verdict()
};

}  // namespace tutti

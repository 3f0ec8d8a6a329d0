#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/compute/gradient_sync.h"
#include "actors/compute/sync_client.h"
#include "actors/messages/plan_entry.h"
#include "sharding/catalog.h"
#include "sharding/sharded_parameters.h"
#include "sharding/units.h"
#include "training/state.h"

namespace tutti {

// Unshards the parameters of a sharded model for its passes: gathers units by entries of the plan that Sync
// runs. The order of the gathers is fixed before the pass; this rank serves its part of a unit even without
// calling the unit. This thread allocates a unit's memory before it requests the gather, and frees the
// memory: the use of memory does not depend on timing.
//
// Hooks on the slots of all units but the root unit say when the model computes with a unit. Backward runs in
// the reverse order of forward: when the backward of a unit begins, the backward of all units called later is
// over.
class Unsharding {
 public:
  virtual ~Unsharding() = default;
  Unsharding(const Unsharding&) = delete;

  // Calls GradientSync::leave_after from now on.
  void notify(GradientSync& gradients) { gradients_ = &gradients; }

  // True if a unit is whole only while the model computes with the unit.
  virtual bool reshards() const = 0;

  double gathered_bytes() const { return parameters_.gathered_bytes(); }

  // The gathers of a pass of training, the first entries of its plan: for `forwards` passes without backward,
  // then for portions. A pass may skip any gather. `trained`: for each parameter, true if a gradient is
  // required.
  virtual std::vector<PlanEntry> plan(int64_t forwards, int64_t portions,
                                      const std::vector<bool>& trained) = 0;
  // The gathers of visit_all.
  std::vector<PlanEntry> plan_of_all();

  // Begins the pass: gathers the root unit. Later writes to the share are not seen by the pass.
  virtual void begin_pass() = 0;
  // In place of begin_pass, on a rank that only serves.
  virtual void serve_pass() = 0;
  // Serves the forwards that are left before the portions, of a pass that may not have begun.
  virtual void end_forwards() {
    if (!active_) serve_pass();
  }
  virtual void begin_portion(int64_t portion);
  // Serves the remaining gathers of the portion.
  virtual void end_portion() { portion_ = kNone; }
  // After the last use, also after an exception: frees held memory, when gathers into it are done. Serves
  // nothing; SyncClient::finish_pass does.
  void end_pass();

  // Gathers unit after unit, with all bits, and calls `visit` for each whole parameter.
  void visit_all(const RankServices::Visit& visit);

 protected:
  enum class Phase { kForward, kBackward };
  // A planned gather of a unit.
  struct Use {
    std::size_t unit = 0;
    Phase phase = Phase::kForward;
    int64_t portion = kNone;
    int first_entry = 0, last_entry = 0;  // [first, last)
  };
  static constexpr int64_t kNone = -1;

  // Moves the share of the parameters into memory that other ranks read. `stays`, `cast`: of
  // ShardedParameters. Collective. All references must outlive this object.
  Unsharding(SyncClient& sync, State& state, const std::vector<Unit>& units, bool stays,
             const std::vector<bool>& cast);

  // Plans the gather of a unit by entries that were added from `first_entry` on.
  void add_use(std::size_t unit, Phase phase, int64_t portion, int first_entry,
               const std::vector<PlanEntry>& entries);
  PlanEntry entry_of(const ShardedParameters::Block& block, CutPtr cut) const;

  virtual void unshard(std::size_t unit, Phase phase) = 0;  // returns when the unit is held
  virtual void prefetch(Phase) {}
  virtual void reshard(std::size_t /*unit*/, bool /*has_backward*/) {}  // after forward
  virtual void leave_after(std::size_t unit) { gradients_->leave_after(unit); }

  void request(std::size_t use);
  void wait(std::size_t unit);
  void free(std::size_t unit);

  SyncClient& sync_;
  State& state_;
  std::vector<Unit> units_;
  ShardedParameters parameters_;
  std::vector<Use> uses_;  // in the plan's order
  std::size_t next_ = 0;   // the first use that is neither requested nor skipped
  bool active_ = false;    // within a pass
  int64_t portion_ = kNone;
  std::vector<std::ptrdiff_t> asked_for_;  // of each unit: the use whose gather is in progress, or kNone

 private:
  TensorTree forward(std::size_t unit, const TensorTree& input, const Slot::Next& next);
  bool hook_backward(std::size_t unit, const TensorTree& output) const;
  void before_backward(std::size_t unit);

  GradientSync* gradients_ = nullptr;
  bool all_ = false;             // the plan is plan_of_all
  std::size_t backward_at_ = 0;  // the earliest unit whose backward has begun
  std::vector<Slot::Hook> hooks_;
  std::shared_ptr<Unsharding*> self_ =
      std::make_shared<Unsharding*>(this);  // hooks of tensors may outlive it
};

// By the strategy: unit by unit (full, hybrid), or once a pass, after which whole parameters stay in memory.
// Collective. All references must outlive it.
std::unique_ptr<Unsharding> make_unsharding(SyncClient& sync, State& state, const std::vector<Unit>& units,
                                            const ShardingSettings& settings);

}  // namespace tutti

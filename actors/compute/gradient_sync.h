#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/compute/sync_client.h"
#include "actors/messages/plan_entry.h"
#include "data/portions.h"
#include "sharding/units.h"
#include "training/state.h"

namespace tutti {

// Sums the gradients of a pass over ranks. Called by Exchange, which holds the order of calls.
class GradientSync {
 public:
  virtual ~GradientSync() = default;

  virtual void begin_pass() {}
  virtual void begin_portion(const Portion&) {}
  virtual void end_portion() {}
  virtual void end_pass() {}
  virtual void abandon_pass() {}
  // Backward has left all units after `unit`, and their parameters are requested or served.
  virtual void leave_after(std::size_t /*unit*/) {}

  // `trained`: for each parameter, true if a gradient is required from the next plan on.
  virtual void follow_frozen(const std::vector<bool>& /*trained*/) {}
  // The entries that reduce gradients, behind `first` other entries in the plan of a pass.
  virtual std::vector<PlanEntry> plan(int /*first*/, int64_t /*portions*/) { return {}; }

  // Waits until this rank's share of the gradients is reduced. True if the share is finite; always on a
  // device, which checks later (PassFacts::skip).
  virtual bool wait() = 0;
  // The reduced gradient of each view; undefined without a place.
  virtual std::vector<at::Tensor> gradients() = 0;
  // The number of trained parameters without a gradient in the pass, and for each parameter 1 with a
  // gradient, else 0 (float64).
  virtual int64_t unused() const { return 0; }
  virtual at::Tensor used() const { return {}; }

  // True if gradients have memory of their own, freed at the end of the step.
  virtual bool owns_gradients() const = 0;
  virtual double bucket_bytes() const { return 0; }
  // Of sums of this rank's grains in the pass so far.
  virtual double bytes_of_grains() const { return 0; }
};

// For one rank: gradients are autograd's own. `scaled`: losses are scaled, so every element is checked.
std::unique_ptr<GradientSync> make_local_gradients(State& state, bool scaled);

// In buckets of so many bytes, each as soon as filled by backward: DDP. `shards`: a rank needs the sums of
// its rows alone.
std::unique_ptr<GradientSync> make_bucket_sync(SyncClient& sync, State& state, int64_t bucket_bytes,
                                               bool shards);

// Unit by unit and microbatch by microbatch; a rank keeps the sums of its rows: ZeRO-2, FSDP. `replicas`: the
// sums are summed again over the replicas of the shard.
std::unique_ptr<GradientSync> make_unit_sync(SyncClient& sync, State& state, const std::vector<Unit>& units,
                                             bool replicas);

// For each parameter, true if a gradient is required now.
std::vector<bool> trained_of(const State& state);

}  // namespace tutti

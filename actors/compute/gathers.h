#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/messages/plan_entry.h"
#include "actors/messages/rank_actors.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "sharding/sharded_parameters.h"
#include "sharding/unit_hooks.h"
#include "training/state.h"

namespace tutti {

// Gathers the parameters of a sharded model for its passes: unit by unit as the model calls them, by entries
// of the plan that Sync runs. The order of the gathers is fixed before the pass; this rank serves its part of
// a unit even if it does not call the unit. This thread allocates a unit's memory before it requests the
// gather, and frees the memory: the use of memory does not depend on timing.
class Gathers {
 public:
  struct Options {
    bool frees = true;     // false: whole parameters stay, and are gathered once a pass
    bool prefetch = true;  // gather the next unit while the model computes
    bool reshard_after_forward = true;
    // Called when backward has left all units after `unit`, and their gathers are requested or served.
    std::function<void(std::size_t unit)> leave_after = {};
  };

  // Allocates memory of GroupRole::kGathers. Collective.
  using Allocate = std::function<std::vector<at::Tensor>(std::vector<int64_t> bytes)>;

  // Moves the share of the parameters into memory that other ranks read. All references must outlive this
  // object.
  Gathers(Context& context, State& state, const std::vector<Unit>& units, Options options,
          const RankActors& actors, Recorder& recorder, const Allocate& allocate);

  // The gathers of a pass of training, the first entries of its plan: for `forwards` passes without backward,
  // then for microbatches. A pass may skip any of them. `trained`: for each parameter, true if it requires a
  // gradient. A frozen parameter is gathered once and stays until its rows change on some rank; or, if
  // parameters do not stay, it is gathered for backward only if an earlier parameter is trained.
  std::vector<PlanEntry> plan(int64_t forwards, int64_t microbatches, const std::vector<bool>& trained);
  // The gathers of passes without backward only.
  std::vector<PlanEntry> plan_of_forwards(int64_t forwards) { return plan(forwards, 0, {}); }
  // The gathers of visit_all.
  std::vector<PlanEntry> plan_of_all();

  // Begins the pass: gathers the root unit. Later writes to the share are not seen by the pass.
  void begin_pass();
  void begin_microbatch(int64_t microbatch);
  // Serves the remaining gathers of the microbatch.
  void end_microbatch();
  // After the last use, also after an exception: frees held memory.
  void end_pass();

  // In place of begin_pass, on a rank that only serves.
  void serve_pass() { parameters_.cast_parts(); }
  // Gathers unit after unit, with all bits, and calls `visit` for each parameter while it is whole.
  void visit_all(const RankServices::Visit& visit);

 private:
  enum class Phase { kForward, kBackward };
  // A planned gather of a unit.
  struct Use {
    std::size_t unit = 0;
    Phase phase = Phase::kForward;
    int64_t microbatch = kNone;
    int first_entry = 0, last_entry = 0;  // [first, last)
  };
  static constexpr int64_t kNone = -1;

  void add_sweep(Phase phase, int64_t microbatch, std::vector<PlanEntry>& entries);
  void add(std::size_t unit, Phase phase, int64_t microbatch, std::vector<PlanEntry>& entries);
  PlanEntry entry_of(const ShardedParameters::Block& block, CutPtr cut) const;
  void add_halves(const ShardedParameters::Block& block, std::vector<PlanEntry>& entries) const;
  std::vector<bool> find_gathers_again() const;
  bool asks_for_changes() const;
  void look_for_changes();
  void before_forward(std::size_t unit);
  void after_forward(std::size_t unit, bool has_backward);
  void before_backward(std::size_t unit);
  void need(std::size_t unit, Phase phase);
  std::size_t find(std::size_t unit, Phase phase) const;
  void prefetch(Phase phase);
  void request(std::size_t use);
  void skip_to(std::size_t use);
  void wait(std::size_t unit);
  void free(std::size_t unit);
  void free_later_than(std::size_t unit);
  bool is_held(std::size_t unit) const;
  bool keeps(std::size_t unit, bool has_backward) const;
  void run(int entry, const at::Tensor& whole);
  void record(TraceKind kind, std::size_t unit);

  Context& context_;
  State& state_;
  ActorId sync_;
  Recorder& recorder_;
  std::vector<Unit> units_;
  Options options_;
  ShardedParameters parameters_;
  UnitHooks hooks_;

  std::vector<bool> trained_;        // of the plan; empty: no backward
  std::vector<bool> gathers_again_;  // of each unit, whether the plan has a gather for its backward
  at::Tensor changed_;               // [1] float64: not 0 if this rank's rows of frozen parameters changed
  std::optional<uint64_t> frozen_rows_;  // hash of those rows at their last gather

  std::vector<Use> uses_;  // in the plan's order
  std::size_t next_ = 0;   // the first use that is neither requested nor skipped
  bool active_ = false;    // within a pass
  bool all_ = false;       // the plan is plan_of_all
  int64_t microbatch_ = kNone;
  std::size_t backward_at_ = 0;            // the earliest unit whose backward has begun
  std::vector<std::ptrdiff_t> asked_for_;  // of each unit: the use whose gather is in progress, or kNone
};

}  // namespace tutti

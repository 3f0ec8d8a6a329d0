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
// of the plan that Sync runs. The order of the gathers is fixed before the pass; a unit that this rank does
// not call is served to the others. Memory for a unit is allocated before the gather is asked for, by this
// thread, and freed by this thread, so that it does not depend on time.
class Gathers {
 public:
  struct Options {
    bool frees = true;     // else whole parameters stay, and are gathered once a pass
    bool prefetch = true;  // the next unit while the model computes with one
    bool reshard_after_forward = true;
    // Backward has left all units after `unit`; their gathers are asked for, or served.
    std::function<void(std::size_t unit)> leave_after = {};
  };

  // Allocates memory of GroupRole::kGathers. Collective.
  using Allocate = std::function<std::vector<at::Tensor>(std::vector<int64_t> bytes)>;

  // Moves the share of the parameters into memory that other ranks read. All references must outlive this.
  Gathers(Context& context, State& state, const std::vector<Unit>& units, Options options,
          const RankActors& actors, Recorder& recorder, const Allocate& allocate);

  // The gathers of a pass of training, the first entries of its plan: of `forwards` passes without backward,
  // then of microbatches. A pass may leave out any of them. `trained`: of each parameter, whether it requires
  // a gradient. Those that require none are gathered once and stay, until a rank's rows of them change; or,
  // where they do not stay, are not gathered for backward if nothing before them is trained.
  std::vector<PlanEntry> plan(int64_t forwards, int64_t microbatches, const std::vector<bool>& trained);
  // Those of passes without backward alone.
  std::vector<PlanEntry> plan_of_forwards(int64_t forwards) { return plan(forwards, 0, {}); }
  // Those of visit_all.
  std::vector<PlanEntry> plan_of_all();

  // The pass begins: gathers the root unit. What is written into the share from now on is not seen.
  void begin_pass();
  void begin_microbatch(int64_t microbatch);
  // Serves what is left of the microbatch.
  void end_microbatch();
  // After the last use, also after an exception: frees what is held.
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

  std::vector<bool> trained_;        // of the plan; empty: it has no backward
  std::vector<bool> gathers_again_;  // of each unit, whether the plan has a gather for its backward
  at::Tensor changed_;               // [1] float64: not 0 if this rank's rows of frozen parameters changed
  std::optional<uint64_t> frozen_rows_;  // hash of those rows when they were gathered last

  std::vector<Use> uses_;  // in the plan's order
  std::size_t next_ = 0;   // the first use that is neither asked for nor skipped
  bool active_ = false;    // within a pass
  bool all_ = false;       // the plan is plan_of_all
  int64_t microbatch_ = kNone;
  std::size_t backward_at_ = 0;            // the earliest unit whose backward has begun
  std::vector<std::ptrdiff_t> asked_for_;  // of each unit: the use whose gather is under way, or kNone
};

}  // namespace tutti

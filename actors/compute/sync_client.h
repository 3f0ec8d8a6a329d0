#pragma once

#include <cstdint>
#include <vector>

#include "actors/messages/plan_entry.h"
#include "actors/messages/rank_actors.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "training/state.h"

namespace tutti {

// Compute's side of Sync: the plan of a pass, and its entries.
class SyncClient {
 public:
  // All references must outlive the client.
  SyncClient(Context& context, const State& state, const RankActors& actors, Recorder& recorder);
  ~SyncClient();
  SyncClient(const SyncClient&) = delete;

  // Flat memory (uint8) of a group, charged to the meter while this lives. Collective.
  std::vector<at::Tensor> allocate(GroupRole group, std::vector<int64_t> bytes);

  void set_plan(std::vector<PlanEntry> entries);
  // `whole`: see RunEntry.
  void run(int entry, const at::Tensor& whole = {});
  // Waits for an entry; on a device, this thread's stream waits for its work. True if its result is finite.
  bool wait(int entry);
  // Runs the entries that are left, and waits for all entries. True if all results are finite.
  bool finish_pass();

  // The sum over the ranks of a group of `values`, in their memory: of kWorld, or outside of a pass of
  // kReductions.
  at::Tensor sum(const at::Tensor& values, GroupRole group = GroupRole::kWorld);

  void record(TraceKind kind, int64_t number);

 private:
  std::vector<at::Tensor> on_device(const std::vector<int64_t>& bytes) const;

  Context& context_;
  const State& state_;
  ActorId sync_;
  Recorder& recorder_;
  int64_t charged_bytes_ = 0;  // for memory outside of the meter's allocator
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/messages/plan_entry.h"
#include "actors/messages/rank_actors.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "training/state.h"

namespace tutti {

// The collectives of this rank, as the code between them sees them: the plan of a pass, and its entries.
class SyncClient {
 public:
  SyncClient() = default;
  virtual ~SyncClient() = default;
  SyncClient(const SyncClient&) = delete;

  // Flat memory (uint8) of a group, charged to the meter while this lives. Collective.
  virtual std::vector<at::Tensor> allocate(GroupRole group, std::vector<int64_t> bytes) = 0;

  virtual void set_plan(std::vector<PlanEntry> entries) = 0;
  // `whole`: see RunEntry.
  virtual void run(int entry, const at::Tensor& whole) = 0;
  void run(int entry) { run(entry, {}); }
  // Waits for an entry; on a device, this thread's stream waits for its work. True if its result is finite.
  virtual bool wait(int entry) = 0;
  // Runs the entries that are left, and waits for all entries. True if all results are finite.
  virtual bool finish_pass() = 0;

  // The sum over the ranks of a group of `values`, in their memory: of kWorld, or outside of a pass of
  // kReductions.
  virtual at::Tensor sum(const at::Tensor& values, GroupRole group) = 0;

  virtual void record(TraceKind kind, int64_t number) = 0;
};

// Compute's side of Sync, which runs the collectives. All references must outlive the client.
std::unique_ptr<SyncClient> make_sync_client(Context& context, const State& state, const RankActors& actors,
                                             Recorder& recorder);

}  // namespace tutti

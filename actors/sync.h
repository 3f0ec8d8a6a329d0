#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/control_line.h"
#include "actors/group_work.h"
#include "actors/messages/messages.h"
#include "collectives/mesh.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "runtime/transport.h"
#include "tensors/digests.h"

namespace tutti {

// Runs every collective of its rank, the collectives of a pass by Compute's plan, and carries control packets
// between Supervisors. The only actor that uses the groups and the transport, and so MPI. Has groups from
// Join on; requests wait in their order until all groups are ready, which Sync polls.
//
// Entries of groups on a device (Group::runs_on_stream) are posted in one order, by PlanEntry::place; entries
// of other groups in an order of the group.
//
// Polls outstanding collectives: while Compute waits, with a yield between polls for the first
// GroupWork::kYieldFor; else at an interval of a sixteenth of the time waited, from kShortestPoll to
// kLongestPoll, so that waiting for a slow rank costs little.
class Sync final : public Actor {
 public:
  static constexpr int kMostPosted = 8;  // entries of a group at a time, so that a poll is short

  Sync(Transport& transport, ActorId supervisor, Recorder& recorder, const Device& device = {});

  void receive(Context& context, Envelope& envelope) override;
  std::optional<TimePoint> idle(Context& context) override;

 private:
  void handle(Context& context, Envelope& envelope);
  void handle_request(Context& context, Envelope& envelope);
  void join(Context& context, Join& message);
  TimePoint poll(Context& context);
  bool drive(Context& context);                          // true if any collective has finished
  static constexpr std::size_t kOnDevice = kGroupRoles;  // the queue of all groups on a device
  struct Entry {
    bool on_device() const { return queue == kOnDevice; }

    PlanEntry plan;
    std::size_t queue;
    std::optional<WindowedDigest> digest;
    bool ready = false;               // in this pass
    bool posted = false;              // in this pass
    bool done = false;                // in this pass
    bool finite = true;               // its result in this pass
    at::Tensor whole;                 // of this pass
    StreamOrder order;                // `ready`, then `done`, of this pass
    std::optional<Envelope> awaited;  // AwaitEntry's envelope, until the entry is done
  };
  // The entries of a group, or of all groups on a device, in their order.
  struct Queue {
    std::vector<std::size_t> entries;
    std::size_t next = 0;  // of `entries`, in this pass
    int posted = 0;        // posted and not done
  };

  void set_plan(SetPlan& plan);
  void run_entry(Context& context, const RunEntry& run);
  void await_entry(Context& context, Envelope& envelope, const AwaitEntry& request);
  void finish_step(Context& context, Envelope& envelope, const FinishStep& finish);
  void connect(Context& context);
  void post_ready(Context& context);
  bool may_begin(const Entry& entry) const;
  void begin(Context& context, Entry& entry);
  bool is_offloaded(const PlanEntry& plan) const;
  at::Tensor part_on_device(const PlanEntry& plan) const;
  WorkPtr work_of(const Entry& entry);
  void end(Context& context, Entry& entry, const Work& work);
  void take_results(Entry& entry, const Work& work);
  void mark_done(Context& context, Entry& entry, bool finite);
  void end_pass_if_done(Context& context);
  void agree(Context& context, const Agree& mine);
  struct MemoryRequest;
  void allocate(Context& context, const std::shared_ptr<MemoryRequest>& request);

  Device device_;
  ActorId supervisor_;
  Recorder& recorder_;
  ControlLine control_;
  GroupWork work_;

  bool connected_ = false;      // all groups are ready
  std::deque<Envelope> early_;  // requests from before
  std::vector<Entry> entries_;
  std::array<Queue, kGroupRoles + 1> queues_;
  at::Tensor offloaded_;               // uint8, of the device: a part that the host keeps, to be gathered
  std::size_t running_ = 0;            // entries that are posted and not done
  std::optional<Envelope> finishing_;  // FinishStep's envelope, until all entries are done
  bool finite_ = true;                 // the sums of this pass
  int64_t step_ = 0;                   // of the current round of collectives
  int awaited_ = 0;                    // requests that wait for a collective
};

}  // namespace tutti

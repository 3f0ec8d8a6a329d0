#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/messages/messages.h"
#include "collectives/group.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "runtime/transport.h"
#include "tensors/digests.h"

namespace tutti {

// Runs every collective of its rank, in the order of the step's plan, and carries control packets between
// Supervisors. The only actor that uses the group and the transport, and so MPI.
//
// Polls outstanding collectives: while Compute waits, with a yield between polls for the first kYieldFor;
// else at an interval of a sixteenth of the time waited, from kShortestPoll to kLongestPoll, so that waiting
// for a slow rank costs little.
class Sync final : public Actor {
 public:
  static constexpr Nanoseconds kYieldFor = std::chrono::microseconds(200);
  static constexpr Nanoseconds kShortestPoll = std::chrono::microseconds(20);
  static constexpr Nanoseconds kLongestPoll = std::chrono::milliseconds(2);
  static constexpr Nanoseconds kHeartbeatEvery = std::chrono::milliseconds(500);

  Sync(Group& group, Transport& transport, ActorId supervisor, Recorder& recorder);

  void receive(Context& context, Envelope& envelope) override;
  std::optional<TimePoint> idle(Context& context) override;

 private:
  using Then = std::function<void(Context&)>;
  struct Outstanding {
    WorkPtr work;
    Then then;  // may be empty
  };

  void set_plan(SetPlan& plan);
  void bucket_ready(Context& context, int index);
  void bucket_reduced(int index, bool finite);
  void finish_step(Context& context, Envelope& envelope, FinishStep& finish);
  void agree(Context& context, const Agree& mine);
  void allocate(Context& context, Envelope& envelope, const AllocateBuckets& wanted);

  void post(Context& context, WorkPtr work, Then then = {});
  bool drive(Context& context);  // true if any collective has finished
  bool is_over(Context& context, Work& work) const;
  void receive_control(Context& context);
  void send_heartbeat(Context& context);
  TimePoint next_poll(TimePoint now) const;

  Group& group_;
  Transport& transport_;
  ActorId supervisor_;
  Recorder& recorder_;

  std::vector<at::Tensor> buckets_;
  std::vector<bool> ready_;
  std::size_t next_bucket_ = 0;
  bool finite_ = true;                   // the buckets reduced in this step are finite; the same on all ranks
  std::vector<WindowedDigest> digests_;  // of this rank's chunk of each bucket; empty if none are recorded
  int64_t statistics_ = 0;
  int64_t step_ = 0;  // of the current round of collectives
  std::vector<Outstanding> outstanding_;
  bool awaited_ = false;  // Compute waits for the outstanding collectives
  TimePoint progress_;    // when a collective was last posted or finished
  TimePoint next_heartbeat_;
  Heartbeats unreported_;  // heartbeats since the last report to the Supervisor
  Heartbeats newest_;      // the newest heartbeat of each rank
  Pending<Noted> reporting_;
};

}  // namespace tutti

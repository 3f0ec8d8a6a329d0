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

// Runs every collective of its rank, in the order of the step's plan, and carries control messages between
// the Supervisors. The only actor that touches the group and the transport, and so MPI.
//
// Waiting: while Compute waits too, Sync yields between looks; while Compute computes, it sleeps kShortNap
// between them. Either way the naps grow with the time waited (to a sixteenth of it, kLongNap at most), so
// that waiting for a slow rank costs next to nothing.
class Sync final : public Actor {
 public:
  static constexpr Nanoseconds kYieldFor = std::chrono::microseconds(200);
  static constexpr Nanoseconds kShortNap = std::chrono::microseconds(20);
  static constexpr Nanoseconds kLongNap = std::chrono::milliseconds(2);
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
  bool drive(Context& context);  // whether anything finished
  bool is_over(Context& context, Work& work) const;
  void serve_control(Context& context);
  void tell_heard(Context& context);
  void heartbeat(Context& context);
  TimePoint next_look(TimePoint now) const;

  Group& group_;
  Transport& transport_;
  ActorId supervisor_;
  Recorder& recorder_;

  std::vector<at::Tensor> buckets_;
  std::vector<bool> ready_;
  std::size_t next_bucket_ = 0;
  bool finite_ = true;  // the step's buckets are, as far as they are reduced; all ranks see the same
  std::vector<WindowedDigest> digests_;  // of this rank's chunk of each bucket; none when nobody wants them
  int64_t statistics_ = 0;
  int64_t step_ = 0;  // of the round of collectives under way
  std::vector<Outstanding> outstanding_;
  bool asked_ = false;  // Compute waits for the outstanding collectives
  TimePoint moved_;     // when a collective was last posted or finished
  TimePoint next_heartbeat_;
  Heard heard_;   // since the Supervisor was last told
  Heard newest_;  // of each rank
  Pending<Noted> noting_;
};

}  // namespace tutti

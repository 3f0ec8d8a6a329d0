#pragma once

#include <cstdint>

#include "actors/messages/messages.h"
#include "collectives/group.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "runtime/transport.h"
#include "tensors/rank_topology.h"

namespace tutti {

// The packets between the Supervisors of all ranks: orders, and heartbeats, which this object sends itself.
class ControlLine {
 public:
  static constexpr Nanoseconds kHeartbeatEvery = std::chrono::milliseconds(500);

  // All must outlive the line.
  ControlLine(Transport& transport, ActorId supervisor, Recorder& recorder)
      : transport_(transport), supervisor_(supervisor), recorder_(recorder) {}

  void join(const RankTopology& place) { place_ = place; }
  // `step`: for the journal.
  void send(Context& context, Envelope& envelope, int64_t step);
  // Passes packets on to the Supervisor, and sends a heartbeat if due. `waits`: for other ranks.
  void poll(Context& context, int64_t step, bool waits);

  // `check`, which may find that a rank is lost. The error then names the last event in its newest heartbeat.
  template <class Check>
  bool holds(Context& context, const Check& check) const try {
    return check();
  } catch (const LostRankError& lost) {
    throw_with_last_event(context, lost);
    throw;
  }

 private:
  void receive(Context& context, int64_t step);
  void send_heartbeat(Context& context, bool waits);
  void throw_with_last_event(Context& context, const LostRankError& lost) const;  // if anything was heard

  Transport& transport_;
  ActorId supervisor_;
  Recorder& recorder_;
  RankTopology place_;
  TimePoint next_heartbeat_;
  Heartbeats unreported_;  // since the last report to the Supervisor
  Heartbeats newest_;      // of each rank
  Pending<Noted> reporting_;
};

}  // namespace tutti

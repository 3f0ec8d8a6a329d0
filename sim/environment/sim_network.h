#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/actor/token_scheduler.h"
#include "runtime/random.h"
#include "runtime/transport.h"

namespace tutti {

// The simulated control network. Each packet takes a drawn time. Packets from one rank to another stay in
// order; packets of different senders may overtake each other.
class SimNetwork {
 public:
  // Time added to a packet, the earliest time at which the packet leaves (kNever: never), and a counter (or
  // null) to increment if a later packet overtakes the packet.
  struct ExtraDelay {
    Nanoseconds more{0};
    int64_t* overtaken = nullptr;
    TimePoint not_before{};
  };
  // Called for each packet; may throw if the sender's process has ended.
  using Delay = std::function<ExtraDelay(int from, int to)>;

  SimNetwork(TokenScheduler& scheduler, int size, const RandomKey& draw, Delay delay);
  ~SimNetwork();

  // One rank's endpoint; must not outlive this object.
  std::unique_ptr<Transport> transport(int rank);
  // The actor that polls the rank's endpoint, woken for each packet.
  void set_reader(int rank, ActorId reader);

  // Drops the packets in flight of a rank whose process has ended.
  void lose_packets_of(int rank);

 private:
  struct Inbox;
  class Endpoint;
  void send(int from, int to, std::string bytes);
  std::optional<Transport::Packet> poll(int rank);

  TokenScheduler& scheduler_;
  RandomKey draw_;
  Delay delay_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
  uint64_t sent_ = 0;
};

}  // namespace tutti

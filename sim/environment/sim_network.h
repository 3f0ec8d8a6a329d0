#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/random.h"
#include "runtime/transport.h"
#include "sim/environment/sim_scheduler.h"

namespace tutti {

// The control network of a simulated world. Every packet takes a time of its own, drawn from the seed: those
// of one sender to one rank stay in order, those of different senders overtake each other.
class SimNetwork {
 public:
  // What a packet takes besides, and what counts it when it then arrives after one that another rank had
  // sent later; null: nothing does.
  struct Lateness {
    Nanoseconds more{0};
    int64_t* overtaken = nullptr;
  };
  // Of each packet; a chance to throw when the sender is no more.
  using Delay = std::function<Lateness(int from, int to)>;

  SimNetwork(SimScheduler& scheduler, int size, const RandomKey& draw, Delay delay);
  ~SimNetwork();

  // One rank's end; must not outlive this.
  std::unique_ptr<Transport> transport(int rank);
  // Who polls a rank's end, and is woken for what arrives there.
  void set_reader(int rank, ActorId reader);

  // The rank's process has ended: what it sent and has not arrived is lost.
  void lose_packets_of(int rank);

 private:
  struct Inbox;
  class End;
  void send(int from, int to, std::string bytes);
  std::optional<Transport::Packet> poll(int rank);

  SimScheduler& scheduler_;
  RandomKey draw_;
  Delay delay_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
  uint64_t sent_ = 0;
};

}  // namespace tutti

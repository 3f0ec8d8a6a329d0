#pragma once

#include <deque>
#include <list>
#include <string>
#include <utility>

#include "collectives/mpi/requests.h"
#include "collectives/mpi/world.h"
#include "runtime/transport.h"

namespace tutti {

// Control messages between MPI's ranks, on a communicator of their own. Constructed by all ranks together.
// What was sent leaves while the sender polls; nobody waits for a rank that no longer does.
class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(const MpiWorld& world);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void send(int to, std::string bytes) override;
  std::optional<Packet> poll() override;

 private:
  MpiComm comm_;
  int rank_;
  int size_;
  std::list<std::pair<std::string, Requests>> outgoing_;
  std::deque<std::string> to_self_;
};

}  // namespace tutti

#pragma once

#include <deque>
#include <string>

#include "collectives/mpi/requests.h"
#include "collectives/mpi/world.h"
#include "runtime/transport.h"

namespace tutti {

// Control messages between MPI ranks, on a separate communicator. The constructor is collective. Messages are
// delivered while the sender polls; a sender never waits for a receiver.
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
  Outgoing outgoing_;
  std::deque<std::string> to_self_;
};

}  // namespace tutti

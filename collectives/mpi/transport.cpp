#include "collectives/mpi/transport.h"

#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int kPacketTag = 0;

}  // namespace

MpiTransport::MpiTransport(const MpiWorld& world)
    : comm_(world.make_comm(world.all_ranks())), rank_(world.rank()), size_(world.size()) {}

void MpiTransport::send(int to, std::string bytes) {
  TUTTI_ASSERT(to >= 0 && to < size_, "no rank " + std::to_string(to));
  if (to == rank_) {
    to_self_.push_back(std::move(bytes));
    return;
  }
  outgoing_.send(comm_.get(), std::move(bytes), to, kPacketTag);
}

std::optional<Transport::Packet> MpiTransport::poll() {
  outgoing_.forget_sent();
  if (!to_self_.empty()) {
    Packet packet{rank_, std::move(to_self_.front())};
    to_self_.pop_front();
    return packet;
  }
  std::optional<Incoming> incoming = receive_any(comm_.get(), kPacketTag);
  if (!incoming) return std::nullopt;
  return Packet{incoming->from, std::move(incoming->bytes)};
}

}  // namespace tutti

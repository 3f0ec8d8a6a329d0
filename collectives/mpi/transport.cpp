#include "collectives/mpi/transport.h"

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
  auto& [kept, requests] = outgoing_.emplace_back(std::move(bytes), Requests());
  requests.send(comm_.get(), kept.data(), static_cast<int64_t>(kept.size()), to, kPacketTag);
}

std::optional<Transport::Packet> MpiTransport::poll() {
  // Looks at one at a time: where ranks yield, each look that finds nothing may cost a turn of the processor.
  while (!outgoing_.empty() && outgoing_.front().second.done()) outgoing_.pop_front();
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

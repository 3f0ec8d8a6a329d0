#include "sim/environment/sim_network.h"

#include <algorithm>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr uint64_t kMaxPacketUs = 500;

}  // namespace

struct SimNetwork::Inbox {
  struct InFlight {
    Transport::Packet packet;
    uint64_t number = 0;  // in the order of sending
    int64_t* overtaken = nullptr;
  };
  std::multimap<TimePoint, InFlight> packets;  // by arrival
  std::map<int, TimePoint> latest;             // arrival, by sender
  uint64_t newest = 0;                         // the highest number polled so far
  std::optional<ActorId> reader;
};

class SimNetwork::Endpoint final : public Transport {
 public:
  Endpoint(SimNetwork& network, int rank) : network_(network), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(network_.inboxes_.size()); }
  void send(int to, std::string bytes) override { network_.send(rank_, to, std::move(bytes)); }
  std::optional<Packet> poll() override { return network_.poll(rank_); }

 private:
  SimNetwork& network_;
  int rank_;
};

SimNetwork::SimNetwork(TokenScheduler& scheduler, int size, const RandomKey& draw, Delay delay)
    : scheduler_(scheduler), draw_(draw), delay_(std::move(delay)) {
  for (int rank = 0; rank < size; ++rank) inboxes_.push_back(std::make_unique<Inbox>());
}

SimNetwork::~SimNetwork() = default;

std::unique_ptr<Transport> SimNetwork::transport(int rank) { return std::make_unique<Endpoint>(*this, rank); }

void SimNetwork::set_reader(int rank, ActorId reader) { inboxes_.at(rank)->reader = reader; }

void SimNetwork::send(int from, int to, std::string bytes) {
  TUTTI_ASSERT(to >= 0 && to < static_cast<int>(inboxes_.size()), "no rank " + std::to_string(to));
  const ExtraDelay extra = delay_ ? delay_(from, to) : ExtraDelay();
  const std::chrono::microseconds usual(draw_.below(kMaxPacketUs, sent_));
  Inbox& inbox = *inboxes_[to];
  TimePoint& latest = inbox.latest[from];
  const TimePoint leaves = std::max(scheduler_.now(), extra.not_before);
  latest = leaves == kNever ? kNever : std::max(latest, leaves + usual + extra.more);
  inbox.packets.emplace(latest, Inbox::InFlight{{from, std::move(bytes)}, ++sent_, extra.overtaken});
  if (inbox.reader && latest != kNever) scheduler_.wake_at(*inbox.reader, latest);
}

std::optional<Transport::Packet> SimNetwork::poll(int rank) {
  Inbox& inbox = *inboxes_[rank];
  const auto first = inbox.packets.begin();
  if (first == inbox.packets.end() || first->first > scheduler_.now()) return std::nullopt;
  std::optional<Transport::Packet> packet = std::move(first->second.packet);
  if (first->second.overtaken && first->second.number < inbox.newest) ++*first->second.overtaken;
  inbox.newest = std::max(inbox.newest, first->second.number);
  inbox.packets.erase(first);
  return packet;
}

void SimNetwork::lose_packets_of(int rank) {
  for (auto& inbox : inboxes_)
    std::erase_if(inbox->packets, [&](const auto& packet) {
      return packet.second.packet.from == rank && packet.first > scheduler_.now();
    });
}

}  // namespace tutti

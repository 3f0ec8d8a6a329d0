#include "collectives/local/transport.h"

#include <deque>
#include <mutex>
#include <utility>

#include "runtime/error.h"

namespace tutti {

struct LocalNetwork::Inbox {
  std::mutex mutex;
  std::deque<Transport::Packet> packets;
};

class LocalNetwork::Endpoint final : public Transport {
 public:
  Endpoint(std::shared_ptr<std::vector<Inbox>> inboxes, int rank)
      : inboxes_(std::move(inboxes)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(inboxes_->size()); }

  void send(int to, std::string bytes) override {
    TUTTI_ASSERT(to >= 0 && to < size(), "no rank " + std::to_string(to));
    Inbox& inbox = (*inboxes_)[to];
    const std::lock_guard lock(inbox.mutex);
    inbox.packets.push_back({rank_, std::move(bytes)});
  }

  std::optional<Packet> poll() override {
    Inbox& inbox = (*inboxes_)[rank_];
    const std::lock_guard lock(inbox.mutex);
    if (inbox.packets.empty()) return std::nullopt;
    std::optional<Packet> packet = std::move(inbox.packets.front());
    inbox.packets.pop_front();
    return packet;
  }

 private:
  std::shared_ptr<std::vector<Inbox>> inboxes_;
  int rank_;
};

LocalNetwork::LocalNetwork(int size) : inboxes_(std::make_shared<std::vector<Inbox>>(size)) {}

std::unique_ptr<Transport> LocalNetwork::transport(int rank) const {
  TUTTI_ASSERT(rank >= 0 && rank < static_cast<int>(inboxes_->size()), "no rank " + std::to_string(rank));
  return std::make_unique<Endpoint>(inboxes_, rank);
}

}  // namespace tutti
